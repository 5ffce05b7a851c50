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

use headrace_types::{ExtraFields, Layout, RowEnd, RowEndInFields};

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
        let ends: Vec<u8> = row_ends(row_end).concat();
        let hides_end = |field: &Field| field.delimiter.iter().flatten().any(|byte| ends.contains(byte));
        if layout.qualifier.is_none() && fields.iter().all(|field| field.ends_row && !hides_end(field)) {
            fields = vec![Field { delimiter: None, is_qualified: false, ends_row: true }];
        }
        Ok(Builder::new(layout, row_end, fields).build()?.for_row_ends())
    }

    /// The same row ends from fewer states: those that differ in nothing else are one. Whether a qualifier is open is still known.
    fn for_row_ends(self) -> Automaton {
        let states = self.modes.len();
        if states > MOST_UNITED_STATES {
            return self;
        }
        // Moore's partition refinement.
        let ends = |step: &Step| matches!(step.event, Event::RowEnd | Event::CommentEnd);
        let steps_of = |state: usize| &self.steps[state * self.width..][..self.width];
        let is_inside = |mode: &Mode| matches!(mode, Mode::Inside | Mode::EscapedInside);
        let mut united: Vec<u32> = self.modes.iter().map(|mode| u32::from(is_inside(mode))).collect();
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
        let stops = (0..count).map(|state| Stops::of(state as u32, &steps[state * self.width..][..self.width], &self.tokens));
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
    pub fn next_row_end(&self, mut state: u32, bytes: &[u8]) -> (u32, Option<usize>) {
        let mut at = 0;
        while at < bytes.len() {
            if let Some(stops) = &self.stops[state as usize] {
                let Some(found) = stops.find(&bytes[at..]) else { return (state, None) };
                at += found;
            }
            let step = self.step(state, bytes[at]);
            state = step.state;
            if matches!(step.event, Event::RowEnd | Event::CommentEnd) {
                return (state, Some(at));
            }
            at += 1;
        }
        (state, None)
    }

    /// Where a state stands.
    pub fn mode(&self, state: u32) -> Mode {
        self.modes[state as usize]
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
    let count = layout.columns.len();
    let own = |index: usize| {
        let column = layout.columns.get(index);
        let is_last = index + 1 == count;
        let to_the_end = is_last && layout.extra_fields == ExtraFields::Keep;
        let other_end = layout.row_end_in_fields == RowEndInFields::Data;
        let delimiter = column.and_then(|column| column.delimiter.as_ref()).unwrap_or(&layout.delimiter);
        Field {
            delimiter: (!to_the_end && !(is_last && other_end)).then(|| delimiter.as_bytes().to_vec()),
            is_qualified: layout.qualifier.is_some() && !to_the_end && column.is_none_or(|column| column.qualified),
            ends_row: !other_end || is_last,
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
fn row_ends(row_end: &RowEnd) -> Vec<Vec<u8>> {
    match row_end {
        RowEnd::Lf => vec![b"\n".to_vec()],
        RowEnd::Crlf => vec![b"\n".to_vec(), b"\r\n".to_vec()],
        RowEnd::Exactly(text) => vec![text.as_bytes().to_vec()],
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
        let token = |kind, text: &str| Token { kind, bytes: text.as_bytes().to_vec() };
        let blanks =
            if layout.blanks_around_qualifier && layout.qualifier.is_some() { vec![" ", "\t"] } else { vec![] };
        let is_other = |blank: &&str| fields.iter().all(|field| field.delimiter.as_deref() != Some(blank.as_bytes()));
        Builder {
            blanks: blanks.into_iter().filter(is_other).map(|blank| token(Kind::Blank, blank)).collect(),
            row_ends: row_ends(row_end).into_iter().map(|bytes| Token { kind: Kind::RowEnd, bytes }).collect(),
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
        // Raw to the end of the row: nothing is escaped either.
        let escape = self.escape.clone().filter(|_| field.delimiter.is_some() || field.is_qualified || !field.ends_row);
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
        let (mut mode, column) = (*mode, *column);
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
                let begun = shown(&rest.iter().copied().flatten().collect::<Vec<_>>());
                return Err(format!("{} {} stands inside of {begun}", early.kind.name(), shown(&early.bytes)));
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
}

impl RowScanner {
    /// A scanner at the start of a row of a file.
    ///
    /// # Errors
    /// As [`Automaton::new`].
    pub fn new(layout: &Layout, row_end: &RowEnd) -> Result<Self, String> {
        Ok(RowScanner { automaton: Arc::new(Automaton::of_rows(layout, row_end)?), state: START })
    }

    /// Whether a qualifier is open: at the end of the text it was never closed.
    pub fn inside_qualifier(&self) -> bool {
        matches!(self.automaton.mode(self.state), Mode::Inside | Mode::EscapedInside)
    }

    /// Takes bytes up to and with the last one of a row end; its place. `None` when the row goes on behind `bytes`.
    pub fn next_row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let (state, found) = self.automaton.next_row_end(self.state, bytes);
        self.state = state;
        found
    }
}
