//! What the first bytes of a text tell of all the others.

use headrace_types::{CoreError, ErrorKind};

use super::ByteSource;

/// At most that many bytes from the front.
pub fn first_bytes(source: &mut dyn ByteSource, most: usize) -> Result<Vec<u8>, CoreError> {
    let mut head = vec![0; most];
    let mut length = 0;
    while length < most {
        match source.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    head.truncate(length);
    Ok(head)
}

/// Keeps what is read, so that it can be read once more.
pub struct Recording {
    source: Box<dyn ByteSource>,
    bytes: Vec<u8>,
    most: usize,
}

impl Recording {
    /// Keeps at most about `most` bytes.
    pub fn new(source: Box<dyn ByteSource>, most: usize) -> Self {
        Recording { source, bytes: Vec::new(), most }
    }

    /// The source from its start, but for its first bytes.
    pub fn replayed(mut self, without: usize) -> Replayed {
        self.bytes.drain(..without);
        Replayed::new(self.bytes, self.source)
    }
}

impl ByteSource for Recording {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        if self.bytes.len() > self.most {
            let what = "the first lines of a stream are too long to tell where its rows begin";
            return Err(CoreError::new(ErrorKind::Source, what)
                .found(format!("no end of them in {} bytes", self.bytes.len()))
                .hint("Correct `row_end` or `skip_lines` of the layout."));
        }
        let count = self.source.read(into)?;
        self.bytes.extend_from_slice(&into[..count]);
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }
}

/// A source behind bytes of it that were read before.
pub struct Replayed {
    head: Vec<u8>,
    at: usize,
    source: Box<dyn ByteSource>,
}

impl Replayed {
    pub fn new(head: Vec<u8>, source: Box<dyn ByteSource>) -> Self {
        Replayed { head, at: 0, source }
    }
}

impl ByteSource for Replayed {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        if self.at == self.head.len() {
            self.head = Vec::new();
            self.at = 0;
            return self.source.read(into);
        }
        let count = into.len().min(self.head.len() - self.at);
        into[..count].copy_from_slice(&self.head[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }
}
