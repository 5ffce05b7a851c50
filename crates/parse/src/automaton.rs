//! What bytes mean: the automaton behind everything that looks for fields and rows. It is data, built from a layout.
//!
//! Leftmost tokens win: a delimiter, row end, qualifier, escape or comment mark is seen where it begins first, and what it
//! takes cannot begin another one. Layouts in which that does not decide are refused when the automaton is built.
//!
//! A qualifier opens a field only as its first byte. Inside, delimiters and row ends are data and a doubled qualifier is one
//! of the text. Behind the closing one stands a delimiter or the row end; anything else is text that does not belong there
//! (rule HR104), and the field goes on, unqualified. An escape makes the token or byte behind it data.

use std::collections::HashMap;
use std::sync::Arc;

use headrace_types::{ExtraFields, Layout, LayoutShape, RowEnd, RowEndInFields};

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
}

/// The state before a row.
pub const START: u32 = 0;
/// Class of all bytes that are part of no token.
const OTHER: usize = 0;
/// Longest token, bytes.
const MAX_TOKEN_BYTES: usize = 64;
/// Most states: of 20,000 columns with delimiters of their own.
const MAX_STATES: usize = 1 << 20;

/// States of larger automata are not united.
const MOST_UNITED_STATES: usize = 4096;

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
}

/// What ends fields in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    delimiter: Option<Vec<u8>>,
    is_qualified: bool,
    ends_row: bool,
    /// Whether the field is raw to the end of the row: nothing is escaped either.
    is_raw: bool,
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
        let is_simple =
            |field: &Field| field.ends_row && !hides_end(field) && !(field.is_raw && layout.escape.is_some());
        if layout.qualifier.is_none() && fields.iter().all(is_simple) {
            fields = vec![Field { delimiter: None, is_qualified: false, ends_row: true, is_raw: false }];
        }
        Ok(Builder::new(layout, row_end, fields).build()?.for_row_ends())
    }

    /// The same row ends from fewer states: those that differ in nothing else are one. Whether a qualifier or an escape is open is
    /// still known.
    fn for_row_ends(self) -> Automaton {
        let states = self.modes.len();
        if states > MOST_UNITED_STATES {
            return self;
        }
        // Moore's partition refinement.
        let ends = |step: &Step| matches!(step.event, Event::RowEnd | Event::CommentEnd);
        let steps_of = |state: usize| &self.steps[state * self.width..][..self.width];
        let open = |(mode, is_partial): (&Mode, &bool)| match mode {
            Mode::Inside | Mode::EscapedInside => 1,
            Mode::Escaped if !is_partial => 2,
            _ => 0,
        };
        let mut united: Vec<u32> = std::iter::zip(&self.modes, &self.partial).map(open).collect();
        let mut count = 0;
        loop {
            let mut numbers = HashMap::new();
            let refined: Vec<u32> = (0..states)
                .map(|state| {
                    let steps = steps_of(state).iter().map(|step| (ends(step), united[step.state as usize]));
                    let next = numbers.len() as u32;
                    *numbers.entry((united[state], steps.collect::<Vec<_>>())).or_insert(next)
                })
                .collect();
            united = refined;
            if std::mem::replace(&mut count, numbers.len()) == numbers.len() {
                break;
            }
        }
        let first = |number: usize| united.iter().position(|own| *own as usize == number).unwrap_or_default();
        let kept: Vec<usize> = (0..count).map(first).collect();
        let step = |step: &Step| Step {
            state: united[step.state as usize],
            event: if ends(step) { Event::RowEnd } else { Event::Nothing },
            ..Step::default()
        };
        let steps: Vec<Step> = kept.iter().flat_map(|&state| steps_of(state)).map(step).collect();
        let stops =
            (0..count).map(|state| Stops::of(state as u32, &steps[state * self.width..][..self.width], &self.tokens));
        Automaton {
            stops: stops.collect(),
            modes: kept.iter().map(|&state| self.modes[state]).collect(),
            partial: kept.iter().map(|&state| self.partial[state]).collect(),
            steps,
            ..self
        }
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

/// What ends the fields of each column, and behind the last one those of fields too many; of one only, if all are the same.
fn fields(layout: &Layout) -> Vec<Field> {
    if layout.shape != LayoutShape::Delimited {
        // Only row ends mean anything.
        return vec![Field { delimiter: None, is_qualified: false, ends_row: true, is_raw: false }];
    }
    let count = layout.columns.len();
    let own = |index: usize| {
        let column = layout.columns.get(index);
        let is_last = index + 1 == count;
        let to_the_end = is_last && layout.extra_fields == ExtraFields::Keep;
        let other_end = layout.row_end_in_fields == RowEndInFields::Data;
        let delimiter = column.and_then(|column| column.delimiter.as_ref()).unwrap_or(&layout.delimiter);
        Field {
            delimiter: (!(to_the_end || (is_last && other_end))).then(|| layout.encoded(delimiter)),
            is_qualified: layout.qualifier.is_some() && !to_the_end && column.is_none_or(|column| column.qualified),
            ends_row: !other_end || is_last,
            is_raw: to_the_end,
        }
    };
    // Fields too many are read as the layout says in general; with row ends as data there are none.
    let mut all: Vec<Field> = (0..=count).map(own).collect();
    if layout.row_end_in_fields == RowEndInFields::Data || layout.extra_fields == ExtraFields::Keep {
        all.pop();
    }
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        all.truncate(1);
    }
    all
}

/// The texts that end a row.
fn row_ends(layout: &Layout, row_end: &RowEnd) -> Vec<Vec<u8>> {
    match row_end {
        RowEnd::Lf => vec![b"\n".to_vec()],
        RowEnd::Either | RowEnd::OnlyLf | RowEnd::OnlyCrlf => vec![b"\n".to_vec(), b"\r\n".to_vec()],
        RowEnd::Exactly(text) => vec![layout.encoded(text)],
        RowEnd::Every(_) => vec![],
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Delimiter,
    RowEnd,
    Qualifier,
    Escape,
    Comment,
    Blank,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Delimiter => "delimiter",
            Kind::RowEnd => "row end",
            Kind::Qualifier => "qualifier",
            Kind::Escape => "escape",
            Kind::Comment => "comment mark",
            Kind::Blank => "blank beside a qualifier",
        }
    }
}

#[derive(Debug, Clone)]
struct Token {
    kind: Kind,
    bytes: Vec<u8>,
}

/// A state on its way: mode, column, and what may be the beginning of a token.
type Place = (Mode, usize, Vec<u8>);

struct Builder {
    fields: Vec<Field>,
    row_ends: Vec<Token>,
    qualifier: Option<Token>,
    escape: Option<Token>,
    comment: Option<Token>,
    blanks: Vec<Token>,
    numbers: HashMap<Place, u32>,
    places: Vec<Place>,
}

impl Builder {
    fn new(layout: &Layout, row_end: &RowEnd, fields: Vec<Field>) -> Self {
        let token = |kind, text: &str| Token { kind, bytes: layout.encoded(text) };
        let blanks =
            if layout.blanks_around_qualifier && layout.qualifier.is_some() { vec![" ", "\t"] } else { vec![] };
        // A tab that is the qualifier stays one, so that the layout is refused.
        let is_other = |blank: &&str| {
            layout.qualifier.is_some_and(|qualifier| blank.starts_with(qualifier))
                || fields.iter().all(|field| field.delimiter.as_deref() != Some(blank.as_bytes()))
        };
        Builder {
            blanks: blanks.into_iter().filter(is_other).map(|blank| token(Kind::Blank, blank)).collect(),
            row_ends: row_ends(layout, row_end).into_iter().map(|bytes| Token { kind: Kind::RowEnd, bytes }).collect(),
            qualifier: layout.qualifier.map(|qualifier| token(Kind::Qualifier, &qualifier.to_string())),
            escape: layout.escape.map(|escape| token(Kind::Escape, &escape.to_string())),
            comment: layout.comment.as_deref().map(|comment| token(Kind::Comment, comment)),
            fields,
            numbers: HashMap::new(),
            places: Vec::new(),
        }
    }

    fn build(mut self) -> Result<Automaton, String> {
        let (classes, tokens) = self.classes()?;
        let width = tokens.len() + 1;
        let mut steps = Vec::new();
        self.number((Mode::RowStart, 0, Vec::new()));
        let mut next = 0;
        while let Some(place) = self.places.get(next).cloned() {
            // A byte that is in no token stands for all of them.
            steps.push(self.step(&place, None)?);
            for &byte in &tokens {
                steps.push(self.step(&place, Some(byte))?);
            }
            next += 1;
            if self.places.len() > MAX_STATES {
                return Err("the layout has too many columns with delimiters of their own".to_owned());
            }
        }
        let modes: Vec<Mode> = self.places.iter().map(|(mode, _, _)| *mode).collect();
        let partial = self.places.iter().map(|(_, _, begun)| !begun.is_empty()).collect();
        let stops = (0..modes.len()).map(|state| Stops::of(state as u32, &steps[state * width..][..width], &tokens));
        let stops = stops.collect();
        Ok(Automaton { classes, width, steps, modes, partial, stops, tokens })
    }

    /// The class of every byte, and the bytes of the classes behind the first one.
    fn classes(&self) -> Result<([u8; 256], Vec<u8>), String> {
        let (mut classes, mut bytes) = ([0; 256], Vec::new());
        let delimiters = self.fields.iter().filter_map(|field| field.delimiter.as_ref());
        // The rest of an escaped delimiter or row end is taken for text as it stands there.
        let escape = self.escape.as_ref().map_or(&[][..], |escape| &escape.bytes);
        let is_escaped = |token: &&Vec<u8>| token.iter().any(|byte| escape.contains(byte));
        if let Some(token) = delimiters.clone().chain(self.row_ends.iter().map(|token| &token.bytes)).find(is_escaped) {
            return Err(format!("escape {} stands inside of {}", shown(escape), shown(token)));
        }
        let others = [&self.qualifier, &self.escape, &self.comment].into_iter().flatten();
        let others = others.chain(&self.row_ends).chain(&self.blanks).map(|token| &token.bytes);
        for token in delimiters.chain(others) {
            if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
                return Err(format!("{} is not 1 to {MAX_TOKEN_BYTES} bytes long", shown(token)));
            }
            for &byte in token {
                if classes[usize::from(byte)] == 0 {
                    bytes.push(byte);
                    classes[usize::from(byte)] =
                        u8::try_from(bytes.len()).map_err(|_| "too many different bytes in delimiters".to_owned())?;
                }
            }
        }
        Ok((classes, bytes))
    }

    fn number(&mut self, place: Place) -> u32 {
        let next = self.places.len() as u32;
        *self.numbers.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            next
        })
    }

    /// What may end, or begin, at a place.
    fn tokens(&self, mode: Mode, column: usize) -> Vec<Token> {
        let field = &self.fields[column];
        let delimiter = field.delimiter.clone().map(|bytes| Token { kind: Kind::Delimiter, bytes });
        let qualifier = self.qualifier.clone().filter(|_| field.is_qualified);
        let row_ends = self.row_ends.iter().filter(|_| field.ends_row).cloned();
        let escape = self.escape.clone().filter(|_| !field.is_raw);
        let blanks = self.blanks.iter().filter(|_| field.is_qualified).cloned();
        match mode {
            Mode::RowStart => self
                .comment
                .iter()
                .cloned()
                .chain(delimiter)
                .chain(row_ends)
                .chain(qualifier)
                .chain(escape)
                .chain(blanks)
                .collect(),
            Mode::FieldStart => {
                delimiter.into_iter().chain(row_ends).chain(qualifier).chain(escape).chain(blanks).collect()
            }
            Mode::Unqualified => delimiter.into_iter().chain(row_ends).chain(escape).collect(),
            Mode::Inside => qualifier.into_iter().chain(escape).collect(),
            Mode::BehindQualifier => delimiter.into_iter().chain(row_ends).chain(qualifier).chain(blanks).collect(),
            Mode::BehindBlanks => delimiter.into_iter().chain(row_ends).chain(blanks).collect(),
            Mode::Escaped => delimiter.into_iter().chain(row_ends).chain(qualifier).chain(escape).collect(),
            Mode::EscapedInside => Vec::new(),
            Mode::Comment => self.row_ends.clone(),
        }
    }

    /// Where a byte leads from a place; `None`: one that is in no token.
    fn step(&mut self, (mode, column, begun): &Place, byte: Option<u8>) -> Result<Step, String> {
        let (begun_mode, column) = (*mode, *column);
        let mut mode = begun_mode;
        let mut text_behind = false;
        let mut rest: Vec<Option<u8>> = begun.iter().copied().map(Some).chain([byte]).collect();
        loop {
            let tokens = self.tokens(mode, column);
            let begins = |token: &&Token| std::iter::zip(&token.bytes, &rest).all(|(own, found)| Some(*own) == *found);
            let candidates: Vec<&Token> = tokens.iter().filter(begins).collect();
            let complete: Vec<&Token> =
                candidates.iter().copied().filter(|token| token.bytes.len() == rest.len()).collect();
            let longer = candidates.iter().copied().find(|token| token.bytes.len() > rest.len());
            if let Some(early) = candidates.iter().find(|token| token.bytes.len() < rest.len()) {
                let (name, text) = (early.kind.name(), shown(&early.bytes));
                let is_begun = |token: &&Token| token.bytes.starts_with(begun);
                let begun_tokens = self.tokens(begun_mode, column);
                let (other, other_text) = begun_tokens
                    .iter()
                    .find(is_begun)
                    .map_or(("text", shown(begun)), |token| (token.kind.name(), shown(&token.bytes)));
                return Err(format!("{name} {text} stands inside of {other} {other_text}"));
            }
            match (complete.as_slice(), longer) {
                ([], Some(_)) => {
                    let state = self.number((mode, column, rest.into_iter().flatten().collect()));
                    return Ok(Step { state, text_behind, ..Step::default() });
                }
                ([token], None) => {
                    let (kind, length) = (token.kind, token.bytes.len() as u8);
                    return Ok(self.complete(mode, column, kind, length, text_behind));
                }
                ([], None) => {}
                (all, longer) => {
                    let (token, other) = (all[0], longer.unwrap_or(all[all.len() - 1]));
                    return Err(format!(
                        "{} {} and {} {} begin alike",
                        token.kind.name(),
                        shown(&token.bytes),
                        other.kind.name(),
                        shown(&other.bytes)
                    ));
                }
            }
            match mode {
                // It is looked at again as what stands in a field without qualifier.
                Mode::BehindQualifier | Mode::BehindBlanks => (mode, text_behind) = (Mode::Unqualified, true),
                _ => {
                    mode = behind_data(mode);
                    rest.remove(0);
                    if rest.is_empty() {
                        let state = self.number((mode, column, Vec::new()));
                        return Ok(Step { state, text_behind, ..Step::default() });
                    }
                }
            }
        }
    }

    fn complete(&mut self, mode: Mode, column: usize, kind: Kind, length: u8, text_behind: bool) -> Step {
        let behind = (column + 1).min(self.fields.len() - 1);
        let (mode, column, event) = match (kind, mode) {
            (_, Mode::Escaped) => (Mode::Unqualified, column, Event::Nothing),
            (Kind::Delimiter, _) => (Mode::FieldStart, behind, Event::Delimiter),
            (Kind::RowEnd, Mode::Comment) => (Mode::RowStart, 0, Event::CommentEnd),
            (Kind::RowEnd, _) => (Mode::RowStart, 0, Event::RowEnd),
            (Kind::Qualifier, Mode::Inside) => (Mode::BehindQualifier, column, Event::Closed),
            (Kind::Qualifier, Mode::BehindQualifier) => (Mode::Inside, column, Event::Rewritten),
            (Kind::Qualifier, _) => (Mode::Inside, column, Event::Opened),
            (Kind::Escape, Mode::Inside) => (Mode::EscapedInside, column, Event::Rewritten),
            (Kind::Escape, _) => (Mode::Escaped, column, Event::Rewritten),
            (Kind::Comment, _) => (Mode::Comment, 0, Event::Nothing),
            (Kind::Blank, Mode::BehindQualifier | Mode::BehindBlanks) => (Mode::BehindBlanks, column, Event::Nothing),
            (Kind::Blank, _) => (Mode::FieldStart, column, Event::Nothing),
        };
        let length = if matches!(event, Event::Delimiter | Event::RowEnd | Event::CommentEnd) { length } else { 0 };
        Step { state: self.number((mode, column, Vec::new())), event, length, text_behind }
    }
}

/// Where a byte of data leads.
fn behind_data(mode: Mode) -> Mode {
    match mode {
        Mode::Inside | Mode::EscapedInside => Mode::Inside,
        Mode::Comment => Mode::Comment,
        _ => Mode::Unqualified,
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}

/// Bytes to look for.
#[derive(Debug, Clone)]
enum Stops {
    None,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    Set(Box<[bool; 256]>),
}

impl Stops {
    /// The bytes that lead away from a state, or with which something ends; none if others do too.
    fn of(state: u32, steps: &[Step], tokens: &[u8]) -> Option<Stops> {
        let stays = Step { state, ..Step::default() };
        if steps[OTHER] != stays {
            return None;
        }
        let bytes: Vec<u8> =
            std::iter::zip(tokens, &steps[1..]).filter(|(_, step)| **step != stays).map(|(&byte, _)| byte).collect();
        Some(match bytes[..] {
            [] => Stops::None,
            [one] => Stops::One(one),
            [one, two] => Stops::Two(one, two),
            [one, two, three] => Stops::Three(one, two, three),
            _ => Stops::Set(Box::new(std::array::from_fn(|byte| bytes.contains(&(byte as u8))))),
        })
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Stops::None => None,
            Stops::One(one) => memchr::memchr(*one, bytes),
            Stops::Two(one, two) => memchr::memchr2(*one, *two, bytes),
            Stops::Three(one, two, three) => memchr::memchr3(*one, *two, *three, bytes),
            Stops::Set(set) => bytes.iter().position(|&byte| set[usize::from(byte)]),
        }
    }
}

/// Finds row ends in text that comes in pieces.
#[derive(Debug, Clone)]
pub struct RowScanner {
    automaton: Arc<Automaton>,
    state: u32,
    /// Bytes of a row without row end.
    row_bytes: Option<usize>,
    /// Those of the present row that were taken.
    taken: usize,
}

impl RowScanner {
    /// A scanner at the start of a row of a file.
    ///
    /// # Errors
    /// As [`Automaton::new`].
    pub fn new(layout: &Layout, row_end: &RowEnd) -> Result<Self, String> {
        let row_bytes = if let RowEnd::Every(bytes) = row_end { Some(*bytes as usize) } else { None };
        let automaton = Arc::new(Automaton::of_rows(layout, row_end)?);
        Ok(RowScanner { automaton, state: START, row_bytes, taken: 0 })
    }

    /// Whether a qualifier is open: at the end of the text it was never closed.
    pub fn inside_qualifier(&self) -> bool {
        matches!(self.automaton.mode(self.state), Mode::Inside | Mode::EscapedInside)
    }

    /// Whether a qualifier is open, or the last byte was an escape: at the end of the text that never ends.
    pub fn is_open(&self) -> bool {
        let is_escaped = self.automaton.mode(self.state) == Mode::Escaped && !self.automaton.is_partial(self.state);
        self.inside_qualifier() || is_escaped
    }

    /// Takes bytes up to and with the last one of a row end; its place. `None` when the row goes on behind `bytes`.
    pub fn next_row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if let Some(row_bytes) = self.row_bytes {
            let left = row_bytes.saturating_sub(self.taken).max(1);
            let ends = bytes.len() >= left;
            self.taken = if ends { 0 } else { self.taken + bytes.len() };
            return ends.then(|| left - 1);
        }
        let (state, found) = self.automaton.next_row_end(self.state, bytes);
        self.state = state;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{Column, ColumnType};
    use proptest::prelude::*;

    /// So many text columns; nothing but a delimiter.
    fn layout(delimiter: &str, columns: usize) -> Layout {
        let column = |number| Column::new(format!("c{number}"), ColumnType::String, true);
        Layout { delimiter: delimiter.to_owned(), columns: (0..columns).map(column).collect(), ..Layout::default() }
    }

    fn quoted(delimiter: &str) -> Layout {
        Layout { qualifier: Some('"'), ..layout(delimiter, 3) }
    }

    fn escaped(delimiter: &str) -> Layout {
        Layout { escape: Some('\\'), ..quoted(delimiter) }
    }

    fn exactly(text: &str) -> RowEnd {
        RowEnd::Exactly(text.to_owned())
    }

    /// What ends where: the place of the last byte, the event, and its length. And the mode behind the text.
    fn events(layout: &Layout, row_end: &RowEnd, text: &str) -> (Vec<(usize, Event, u8)>, Mode) {
        let automaton = Automaton::new(layout, row_end).unwrap();
        let (mut state, mut events) = (START, vec![]);
        for (at, byte) in text.bytes().enumerate() {
            let step = automaton.step(state, byte);
            state = step.state;
            if step.event != Event::Nothing {
                events.push((at, step.event, step.length));
            }
        }
        (events, automaton.mode(state))
    }

    /// The fields of a text: `|` stands between two, `$` behind the last one of a row, `#` behind a comment.
    fn cut(layout: &Layout, row_end: &RowEnd, text: &str) -> String {
        let (events, _) = events(layout, row_end, text);
        let (mut found, mut from) = (String::new(), 0);
        for (at, event, length) in events {
            let mark = match event {
                Event::Delimiter => '|',
                Event::RowEnd => '$',
                Event::CommentEnd => '#',
                _ => continue,
            };
            found.push_str(&text[from..at + 1 - usize::from(length)]);
            found.push(mark);
            from = at + 1;
        }
        found + &text[from..]
    }

    fn refusal(layout: &Layout, row_end: &RowEnd) -> String {
        Automaton::new(layout, row_end).expect_err("it means two things")
    }

    fn row_ends(scanner: &mut RowScanner, bytes: &[u8]) -> Vec<usize> {
        let (mut ends, mut at) = (vec![], 0);
        while let Some(found) = scanner.next_row_end(&bytes[at..]) {
            assert_eq!(scanner.state, START);
            ends.push(at + found);
            at += found + 1;
        }
        ends
    }

    fn check(text: &[u8], ends: &[usize], last: Mode) {
        let mut scanner = RowScanner::new(&quoted(","), &RowEnd::Lf).unwrap();
        assert_eq!(row_ends(&mut scanner, text), ends, "{}", text.escape_ascii());
        let found = events(&quoted(","), &RowEnd::Lf, std::str::from_utf8(text).unwrap()).1;
        assert_eq!(found, last, "{}", text.escape_ascii());
    }

    #[test]
    fn qualifiers_hide_delimiters_and_line_feeds() {
        check(b"a,b\nc\n", &[3, 5], Mode::RowStart);
        check(b"\"a\nb\",c\nd", &[7], Mode::Unqualified);
        check(b"a,\"b\n\"\n", &[6], Mode::RowStart);
        check(b"\"a\"\"\nb\"\n", &[7], Mode::RowStart);
        check(b"\"\"\n\"\"\"\n\"\n", &[2, 8], Mode::RowStart);
        check(b"\"\n", &[], Mode::Inside);
        check(b"\"a\"", &[], Mode::BehindQualifier);
        check(b"a,", &[], Mode::FieldStart);
    }

    #[test]
    fn a_qualifier_inside_an_unqualified_field_is_data() {
        check(b"3\" x 5\"\n\"\n", &[7], Mode::Inside);
        check(b" \"a\n\"\n", &[3], Mode::Inside);
        check(b"a\",\"\n\"\n", &[6], Mode::RowStart);
    }

    #[test]
    fn behind_a_closing_qualifier_text_goes_on_unqualified() {
        check(b"\"a\"b\n", &[4], Mode::RowStart);
        check(b"\"a\"b\"\n\"\n", &[5], Mode::Inside);
        check(b"\"a\" \"b\n\"\n", &[6], Mode::Inside);
        check(b"\"a\"b,\"\n\"\n", &[8], Mode::RowStart);
        check(b"\"a\"\r\n\"b\"\r\"\n", &[4, 10], Mode::RowStart);
        let automaton = Automaton::new(&quoted("||"), &RowEnd::Either).unwrap();
        for (text, behind) in [("\"a\"||", false), ("\"a\"|b", true), ("\"a\"\r\n", false), ("\"a\"\rb", true)] {
            let mut state = START;
            let seen = text.bytes().fold(false, |seen, byte| {
                let step = automaton.step(state, byte);
                state = step.state;
                seen | step.text_behind
            });
            assert_eq!(seen, behind, "{text:?}");
        }
    }

    #[test]
    fn without_a_qualifier_every_line_feed_ends_a_row() {
        let mut scanner = RowScanner::new(&layout("|", 2), &RowEnd::Lf).unwrap();
        assert_eq!(row_ends(&mut scanner, b"\"a\nb|\"\n|"), [2, 6]);
        assert!(!scanner.inside_qualifier() && !scanner.is_open());
        assert_eq!((scanner.next_row_end(b""), scanner.next_row_end(b"\"")), (None, None));
        assert!(!scanner.inside_qualifier());
    }

    #[test]
    fn steps_tell_delimiters_and_row_ends_from_data() {
        use Event::{Closed, Delimiter, Opened, Rewritten, RowEnd};
        let (found, last) = events(&quoted(","), &super::RowEnd::Lf, "\",\",\"\"\na,\n\"\"\"");
        let expected = [
            (0, Opened, 0),
            (2, Closed, 0),
            (3, Delimiter, 1),
            (4, Opened, 0),
            (5, Closed, 0),
            (6, RowEnd, 1),
            (8, Delimiter, 1),
            (9, RowEnd, 1),
            (10, Opened, 0),
            (11, Closed, 0),
            (12, Rewritten, 0),
        ];
        assert_eq!((found.as_slice(), last), (&expected[..], Mode::Inside));
    }

    #[test]
    fn of_delimiters_that_overlap_the_leftmost_counts() {
        let bars = layout("||", 3);
        assert_eq!(cut(&bars, &RowEnd::Lf, "a|||b\n|||\na|b||||\n"), "a||b$||$a|b||$");
        assert_eq!(events(&bars, &RowEnd::Lf, "a|||b").0, [(2, Event::Delimiter, 2)]);
        assert_eq!(cut(&layout("aba", 3), &RowEnd::Lf, "xababay\nabaaba\nab\n"), "x|bay$||$ab$");
        assert_eq!(cut(&layout("aab", 3), &RowEnd::Lf, "aaaab\naaa\n"), "aa|$aaa$");
        assert_eq!(cut(&layout("é", 3), &RowEnd::Lf, "aéè\n"), "a|è$");
        // A token that begins in another one and is not reached.
        assert_eq!(cut(&layout("a|", 3), &exactly("|\n"), "a|\nb|\n"), "|\nb$");
        assert_eq!(events(&bars, &RowEnd::Lf, "a|").1, Mode::Unqualified);
    }

    #[test]
    fn row_ends_are_what_the_file_says_and_nothing_else() {
        let pair = layout("|", 2);
        assert_eq!(cut(&pair, &RowEnd::Lf, "a\r\nb\n\r"), "a\r$b$\r");
        assert_eq!(cut(&pair, &RowEnd::Either, "a\r\nb\nc\rd\r\r\n\r"), "a$b$c\rd\r$\r");
        assert_eq!(cut(&pair, &exactly("\r\n"), "a\r\nb\nc\r|\r\r\n"), "a$b\nc\r|\r$");
        assert_eq!(cut(&pair, &exactly("\r"), "a\rb\n\r"), "a$b\n$");
        assert_eq!(cut(&pair, &exactly("<eol>"), "a|b<e<eol><eol\n>"), "a|b<e$<eol\n>");
        assert_eq!(events(&pair, &exactly("<eol>"), "a<eol>").0, [(5, Event::RowEnd, 5)]);
    }

    #[test]
    fn an_escape_makes_whole_tokens_data() {
        let bars = escaped("||");
        assert_eq!(cut(&bars, &RowEnd::Lf, "a\\||b||c\n"), "a\\||b|c$");
        // Half a token behind the escape is one byte of data, and what follows it is what it is.
        assert_eq!(cut(&bars, &RowEnd::Lf, "a\\|b\n\\|\n"), "a\\|b$\\|$");
        assert_eq!(
            cut(&escaped("|"), &RowEnd::Either, "a\\\r\nb\\\\\r\nc\\\nd\\\r|e\r\n"),
            "a\\\r\nb\\\\$c\\\nd\\\r|e$"
        );
        assert_eq!(cut(&escaped("|"), &exactly("~%"), "a\\~%b\\~|c~%"), "a\\~%b\\~|c$");
        assert_eq!(cut(&escaped("|"), &RowEnd::Lf, "\\\"a|\"b\\\"\n\"|\"c\\\\\"\n"), "\\\"a|\"b\\\"\n\"|\"c\\\\\"$");
        assert_eq!(events(&bars, &RowEnd::Lf, "\\||").0, [(0, Event::Rewritten, 0)]);
        for (text, is_open, mode) in [
            ("a\\", true, Mode::Escaped),
            ("a\\\\", false, Mode::Unqualified),
            ("a\\|", false, Mode::Escaped), // of two bars; there is one byte behind the escape
            ("\"a\\", true, Mode::EscapedInside),
            ("\"a\\\"", true, Mode::Inside),
        ] {
            let mut scanner = RowScanner::new(&bars, &RowEnd::Lf).unwrap();
            assert_eq!(scanner.next_row_end(text.as_bytes()), None, "{text}");
            assert_eq!((scanner.is_open(), events(&bars, &RowEnd::Lf, text).1), (is_open, mode), "{text}");
        }
    }

    #[test]
    fn escaped_row_ends_are_data_for_who_looks_for_row_ends_only() {
        let plain = Layout { escape: Some('\\'), ..layout("|", 2) };
        let kept = Layout { extra_fields: ExtraFields::Keep, ..plain.clone() };
        for (layout, ends) in [(plain, [6, 11].as_slice()), (kept, &[6, 10, 11])] {
            let mut scanner = RowScanner::new(&layout, &RowEnd::Lf).unwrap();
            assert_eq!(row_ends(&mut scanner, b"a\\\n|\\b\nc|\\\n\n"), ends);
        }
    }

    #[test]
    fn comments_begin_with_a_row_and_end_with_the_next_row_end() {
        let commented = Layout { comment: Some("--".to_owned()), ..escaped(",") };
        assert_eq!(cut(&commented, &RowEnd::Lf, "--a,\"b\\\n\"c\"\n-d,--\n--"), "--a,\"b\\#\"c\"$-d|--$--");
        assert_eq!(cut(&commented, &RowEnd::Either, "--\r\n---\r\r\n--\n-\r\n"), "--#---\r#--#-$");
        assert_eq!(cut(&commented, &exactly("~~"), "--\n~~--~\n~~"), "--\n#--~\n#");
        assert_eq!(events(&commented, &RowEnd::Lf, "-").1, Mode::RowStart);
        assert_eq!(events(&commented, &RowEnd::Lf, "--a").1, Mode::Comment);
        assert_eq!(events(&commented, &RowEnd::Lf, "a\n--").1, Mode::Comment);
        // Not behind blanks, and not in a second field.
        let blanks = Layout { comment: Some("#".to_owned()), blanks_around_qualifier: true, ..quoted(",") };
        assert_eq!(cut(&blanks, &RowEnd::Lf, " #\n,#\n#\n"), " #$|#$##");
    }

    #[test]
    fn columns_may_have_delimiters_of_their_own() {
        let mut mixed = layout(",", 3);
        mixed.columns[0].delimiter = Some("::".to_owned());
        mixed.columns[2].delimiter = Some(";".to_owned());
        assert_eq!(cut(&mixed, &RowEnd::Lf, "a,b::c;d,e,f\n::,\n"), "a,b|c;d|e,f$||$");
        // The last one's stands behind it, and behind fields too many the layout's.
        assert_eq!(cut(&mixed, &RowEnd::Lf, "a::b,c;d,e;f\n"), "a|b|c|d|e;f$");
        mixed.columns[1].qualified = false;
        mixed.qualifier = Some('"');
        assert_eq!(cut(&mixed, &RowEnd::Lf, "\"::\"::\",a\n\"::\n"), "\"::\"|\"|a$\"::\n");
    }

    #[test]
    fn a_last_column_may_be_everything_to_the_row_end() {
        let kept = Layout { extra_fields: ExtraFields::Keep, ..escaped(",") };
        assert_eq!(cut(&kept, &RowEnd::Lf, "a,b,\"c,\\\nd,\"\n\",e\n"), "a|b|\"c,\\$d|\"\n\"|e$");
        assert_eq!(cut(&kept, &RowEnd::Lf, "a\\,,b,\\,\"\n"), "a\\,|b|\\,\"$");
    }

    #[test]
    fn row_ends_may_be_data_in_all_columns_but_the_last() {
        let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..escaped("\t") };
        assert_eq!(cut(&bcp, &RowEnd::Lf, "a\n\tb\n\n\tc\t\nd\n"), "a\n|b\n\n|c\t$d\n");
        assert_eq!(cut(&bcp, &RowEnd::Lf, "\n\t\tc\\\n\n"), "\n||c\\\n$");
        // Also where nothing else could be escaped in it.
        let plain = Layout { qualifier: None, ..bcp };
        assert_eq!(cut(&plain, &RowEnd::Lf, "a\tb\tc\\\nd\\\t\n"), "a|b|c\\\nd\\\t$");
        let mut scanner = RowScanner::new(&plain, &RowEnd::Lf).unwrap();
        assert_eq!(row_ends(&mut scanner, b"a\n\tb\tc\\\nd\n"), [9]);
    }

    #[test]
    fn blanks_may_stand_around_qualifiers() {
        let around = Layout { blanks_around_qualifier: true, ..quoted(",") };
        assert_eq!(cut(&around, &RowEnd::Lf, " \t\"a,\" \t,\"b\n\"\t\n"), " \t\"a,\" \t|\"b\n\"\t$");
        assert_eq!(cut(&around, &RowEnd::Lf, " a \",\" b\n"), " a \"|\" b\n");
        assert_eq!(events(&around, &RowEnd::Lf, " ").1, Mode::FieldStart);
        assert_eq!(events(&around, &RowEnd::Lf, "\"a\" ").1, Mode::BehindBlanks);
        assert_eq!(events(&around, &RowEnd::Lf, "\"a\" \"").1, Mode::Unqualified);
        // A tab that is the delimiter is no blank.
        let tabs = Layout { delimiter: "\t".to_owned(), ..around };
        assert_eq!(cut(&tabs, &RowEnd::Lf, "\t \"\t\" \t\n"), "| \"\t\" |$");
    }

    #[test]
    fn layouts_that_mean_two_things_are_refused() {
        let own = |delimiter: &str| {
            let mut own = escaped("|");
            own.columns[0].delimiter = Some(delimiter.to_owned());
            own
        };
        let comment = |text: &str| Layout { comment: Some(text.to_owned()), ..layout("|", 2) };
        let blanks = |delimiter: &str| Layout { blanks_around_qualifier: true, ..quoted(delimiter) };
        for (bad, row_end, text) in [
            (layout("|", 2), exactly("|\n"), r#"delimiter "|" and row end "|\n" begin alike"#),
            (layout("|", 2), exactly("|"), r#"delimiter "|" and row end "|" begin alike"#),
            (layout("||", 2), exactly("|"), r#"row end "|" and delimiter "||" begin alike"#),
            (layout("a|b", 2), exactly("|"), r#"row end "|" stands inside of delimiter "a|b""#),
            (layout("|", 2), exactly("~|\n"), r#"delimiter "|" stands inside of row end "~|\n""#),
            (comment("a|b"), RowEnd::Lf, r#"delimiter "|" stands inside of comment mark "a|b""#),
            (layout("\r\n", 2), RowEnd::Either, r#"delimiter "\r\n" and row end "\r\n" begin alike"#),
            (comment("|"), RowEnd::Lf, r#"comment mark "|" and delimiter "|" begin alike"#),
            (comment("|-"), RowEnd::Lf, r#"delimiter "|" and comment mark "|-" begin alike"#),
            (comment("\n#"), RowEnd::Lf, r#"row end "\n" and comment mark "\n#" begin alike"#),
            (comment(""), RowEnd::Lf, r#""" is not 1 to 64 bytes long"#),
            (blanks(" |"), RowEnd::Lf, r#"blank beside a qualifier " " and delimiter " |" begin alike"#),
            (quoted("\"|"), RowEnd::Lf, r#"qualifier "\"" and delimiter "\"|" begin alike"#),
            (
                Layout { qualifier: Some('\t'), ..blanks("|") },
                RowEnd::Lf,
                r#"qualifier "\t" and blank beside a qualifier "\t" begin alike"#,
            ),
            (own("\\|"), RowEnd::Lf, r#"escape "\\" stands inside of "\\|""#),
            (own("|\\"), RowEnd::Lf, r#"escape "\\" stands inside of "|\\""#),
            (escaped("|"), exactly("\\\n"), r#"escape "\\" stands inside of "\\\n""#),
            (layout(&"-".repeat(65), 2), RowEnd::Lf, &format!("{:?} is not 1 to 64 bytes long", "-".repeat(65))),
        ] {
            assert_eq!(refusal(&bad, &row_end), text);
        }
        for (good, row_end) in
            [(layout("|", 2), exactly("\n|")), (own("|~"), RowEnd::Lf), (comment("-|"), exactly("-"))]
        {
            if let Err(text) = Automaton::new(&good, &row_end) {
                assert_eq!(text, r#"row end "-" and comment mark "-|" begin alike"#);
            }
        }
    }

    /// Layouts whose row ends can be looked for in several ways.
    fn layouts() -> Vec<(Layout, RowEnd)> {
        let mut own = escaped("||");
        own.columns[1].delimiter = Some("ab".to_owned());
        let everything = Layout { comment: Some("b|".to_owned()), blanks_around_qualifier: true, ..own.clone() };
        let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..escaped("a") };
        let kept = Layout { extra_fields: ExtraFields::Keep, qualifier: None, ..escaped("|") };
        vec![
            (quoted(","), RowEnd::Lf),
            (Layout { qualifier: Some('b'), ..quoted(",") }, RowEnd::Either),
            (layout(",", 3), RowEnd::Lf),
            (layout("\r,", 3), exactly("\n\n")),
            (layout("|\n", 3), RowEnd::Either),
            (own, exactly("\n\r")),
            (everything, RowEnd::Either),
            (bcp, RowEnd::Lf),
            (kept, RowEnd::Lf),
        ]
    }

    proptest! {
        #[test]
        fn skipping_equals_stepping_however_the_text_is_cut(
            bytes in prop::collection::vec(prop::sample::select(b"\"\"\",,\n\nab\r |\\".to_vec()), 0..300),
            pieces in prop::collection::vec(0_usize..40, 1..8),
            (layout, row_end) in prop::sample::select(layouts()),
        ) {
            // Of the whole automaton, although the scanner may have a simpler one.
            let automaton = Automaton::new(&layout, &row_end).unwrap();
            let mut state = START;
            let mut skipping = RowScanner::new(&layout, &row_end).unwrap();
            let mut rest = bytes.as_slice();
            for piece in pieces.into_iter().chain([bytes.len()]) {
                let (piece, behind) = rest.split_at(piece.min(rest.len()));
                let mut ends = vec![];
                for (at, &byte) in piece.iter().enumerate() {
                    let step = automaton.step(state, byte);
                    state = step.state;
                    if matches!(step.event, Event::RowEnd | Event::CommentEnd) {
                        ends.push(at);
                    }
                }
                prop_assert_eq!(row_ends(&mut skipping, piece), ends);
                let mode = automaton.mode(state);
                prop_assert_eq!(skipping.inside_qualifier(), matches!(mode, Mode::Inside | Mode::EscapedInside));
                let is_escaped = mode == Mode::Escaped && !automaton.is_partial(state);
                prop_assert_eq!(skipping.is_open(), is_escaped || skipping.inside_qualifier());
                rest = behind;
            }
        }
    }
}
