//! What bytes mean: the automaton behind everything that looks for fields and rows. It is data, built from a layout.
//!
//! Leftmost tokens win: a delimiter, row end, qualifier, escape or comment mark is seen where it begins first, and what it
//! takes cannot begin another one. Layouts in which that does not decide are refused when the automaton is built.
//!
//! A qualifier opens a field only as its first byte. Inside, delimiters and row ends are data and a doubled qualifier is one
//! of the text. A delimiter or the row end follows the closing one. Anything else is text that does not belong there (rule HR104),
//! and the field goes on, unqualified; with `stray_qualifiers: lenient` that qualifier is data instead, and the field goes on inside.
//! In a field without qualifiers, one is data (rule HR110). An escape makes the token or byte behind it data.

mod builder;
mod fields;
mod scanner;
mod stops;
#[cfg(test)]
mod tests;
mod united;

use headrace_types::{Layout, RowEnd};

use self::builder::Builder;
use self::fields::{Field, fields, row_ends};
use self::stops::Stops;

pub use self::scanner::RowScanner;

/// Where in a row a state stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Before the first byte of a row.
    RowStart,
    /// Before the first byte of another field.
    FieldStart,
    /// In a field without qualifier, or behind text that follows a closing one.
    Unqualified,
    /// Between the qualifiers of a field.
    Inside,
    /// Behind a qualifier that closed a field, unless the next byte is another one.
    BehindQualifier,
    /// Behind blanks that follow such a qualifier.
    BehindBlanks,
    /// Behind an escape in a field without qualifier.
    Escaped,
    /// Behind an escape between qualifiers.
    EscapedInside,
    /// In a comment.
    Comment,
}

/// What has ended with a byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    #[default]
    Nothing,
    /// A qualifier that opens a field.
    Opened,
    /// A qualifier that closes it, unless the next byte is another one.
    Closed,
    /// A qualifier behind such a one, or an escape: the text of the field is not what stands there.
    Rewritten,
    /// The delimiter behind a field.
    Delimiter,
    /// The end of a row.
    RowEnd,
    /// The end of a comment.
    CommentEnd,
}

/// Where a byte leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The state behind it.
    pub state: u32,
    /// What has ended.
    pub event: Event,
    /// Bytes of the delimiter or row end that has ended.
    pub length: u8,
    /// Whether the byte, or one that was looked at with it, is text behind a closing qualifier.
    pub text_behind: bool,
    /// Whether one of them is a qualifier that is data.
    pub stray: bool,
}

/// The state before a row.
pub const START: u32 = 0;
/// Class of all bytes that are part of no token.
const OTHER: usize = 0;

/// The automaton of a layout and the row ends of a file.
#[derive(Debug)]
pub struct Automaton {
    /// Class of every byte value.
    classes: [u8; 256],
    width: usize,
    /// By state and class.
    steps: Vec<Step>,
    /// By state.
    modes: Vec<Mode>,
    /// By state.
    partial: Vec<bool>,
    /// By state: the bytes that do not leave it as it is, if all others do.
    stops: Vec<Option<Stops>>,
    tokens: Vec<u8>,
    /// Whether a qualifier closes a field only before a delimiter or a row end.
    is_lenient: bool,
}

impl Automaton {
    /// The automaton for files of a layout whose rows end like this.
    ///
    /// # Errors
    /// Why the layout means two things.
    pub fn new(layout: &Layout, row_end: &RowEnd) -> Result<Automaton, String> {
        Builder::new(layout, row_end, fields(layout)).build()
    }

    /// The same for who looks for row ends only: simpler and so faster where fields make no difference.
    ///
    /// # Errors
    /// As [`Automaton::new`].
    pub fn of_rows(layout: &Layout, row_end: &RowEnd) -> Result<Automaton, String> {
        let mut fields = fields(layout);
        let ends: Vec<u8> = row_ends(layout, row_end).concat();
        let hides_end = |field: &Field| field.delimiter.iter().flatten().any(|byte| ends.contains(byte));
        let is_simple = |field: &Field| field.ends_row && !hides_end(field);
        if layout.qualifier.is_none() && fields.iter().all(is_simple) {
            fields = vec![Field { delimiter: None, is_qualified: false, ends_row: true }];
        }
        Ok(Builder::new(layout, row_end, fields).build()?.for_row_ends())
    }

    /// Where a byte leads.
    #[inline(always)]
    pub fn step(&self, state: u32, byte: u8) -> Step {
        self.steps[state as usize * self.width + usize::from(self.classes[usize::from(byte)])]
    }

    /// Where one or more bytes lead that are part of no token.
    #[inline(always)]
    pub fn step_other(&self, state: u32) -> Step {
        self.steps[state as usize * self.width + OTHER]
    }

    /// Takes bytes up to and with the last one of a row end: the state behind them, and its place. `None` when the row goes on
    /// behind `bytes`.
    pub fn next_row_end(&self, state: u32, bytes: &[u8]) -> (u32, Option<usize>) {
        let (state, found) = self.next_end(state, bytes);
        (state, found.map(|(at, _)| at))
    }

    /// The same, with what has ended there: a row or a comment.
    #[inline]
    pub fn next_end(&self, mut state: u32, bytes: &[u8]) -> (u32, Option<(usize, Step)>) {
        let mut at = 0;
        while at < bytes.len() {
            if let Some(stops) = &self.stops[state as usize] {
                let Some(found) = stops.find(&bytes[at..]) else { return (state, None) };
                at += found;
            }
            let step = self.step(state, bytes[at]);
            state = step.state;
            if matches!(step.event, Event::RowEnd | Event::CommentEnd) {
                return (state, Some((at, step)));
            }
            at += 1;
        }
        (state, None)
    }

    /// Where a state stands.
    pub fn mode(&self, state: u32) -> Mode {
        self.modes[state as usize]
    }

    /// Whether a state stands in a comment.
    pub fn is_comment(&self, state: u32) -> bool {
        self.mode(state) == Mode::Comment
    }

    /// The state at this place of a row whose columns are all alike, with nothing begun.
    pub fn state_of(&self, mode: Mode) -> u32 {
        let is_place = |(own, partial): (&Mode, &bool)| *own == mode && !partial;
        std::iter::zip(&self.modes, &self.partial).position(is_place).unwrap_or_default() as u32
    }

    /// Whether a qualifier is open in a state, also if nothing follows.
    pub fn is_inside(&self, state: u32) -> bool {
        match self.mode(state) {
            Mode::Inside | Mode::EscapedInside => true,
            // The delimiter that has begun would have closed it.
            Mode::BehindQualifier | Mode::BehindBlanks => self.is_lenient && self.is_partial(state),
            _ => false,
        }
    }

    /// Whether bytes before a state may be the beginning of a token.
    pub fn is_partial(&self, state: u32) -> bool {
        self.partial[state as usize]
    }

    /// The number of states; they are 0 to that.
    pub fn states(&self) -> u32 {
        self.modes.len() as u32
    }

    /// Bytes that are part of tokens, each once.
    pub fn tokens(&self) -> &[u8] {
        &self.tokens
    }
}
