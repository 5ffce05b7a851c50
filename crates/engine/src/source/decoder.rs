//! What compressed formats have in common. A decoder owns no file and no thread: bytes are pushed into it.

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes taken from the front of the input.
    pub consumed: usize,
    /// Bytes of text written to the front of the output.
    pub produced: usize,
}

/// What is wrong with a compressed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What was found, as the start of a sentence that ends with a place.
    pub found: String,
    /// What should stand there.
    pub expected: Option<String>,
    /// What to do about it, if something else than getting the file again.
    pub hint: Option<String>,
}

impl Damage {
    /// Damage that only another copy of the file mends.
    pub fn new(found: impl Into<String>) -> Self {
        Damage { found: found.into(), expected: None, hint: None }
    }

    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Decodes one file from its start, or from a place where a piece of it starts that can be decoded alone.
pub trait Decoder: Send {
    /// Decodes from `input` into `output`, neither of which is empty. A step that neither consumes nor produces anything does not
    /// happen: it would be asked for again for ever. It ends with a piece at the latest.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Damage>;

    /// Whether a piece has just ended, its checksum and all, and none has begun.
    fn is_between(&self) -> bool;

    /// Whether the file may end here.
    fn end(&self) -> Result<(), Damage>;
}
