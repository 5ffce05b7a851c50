//! From a layout to the states of its automaton.

use std::collections::HashMap;

use headrace_types::{Layout, MAX_TOKEN_BYTES, RowEnd, StrayQualifiers};

use super::fields::{Field, row_ends};
use super::stops::Stops;
use super::{Automaton, Event, Mode, Step};

/// Most steps, 48 MB: one for each state and each byte that is part of a token, of 20,000 columns with delimiters of their own.
const MAX_STEPS: usize = 1 << 22;

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

pub(super) struct Builder {
    fields: Vec<Field>,
    row_ends: Vec<Token>,
    qualifier: Option<Token>,
    escape: Option<Token>,
    comment: Option<Token>,
    blanks: Vec<Token>,
    is_lenient: bool,
    numbers: HashMap<Place, u32>,
    places: Vec<Place>,
}

impl Builder {
    pub fn new(layout: &Layout, row_end: &RowEnd, fields: Vec<Field>) -> Self {
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
            is_lenient: layout.stray_qualifiers == StrayQualifiers::Lenient,
            fields,
            numbers: HashMap::new(),
            places: Vec::new(),
        }
    }

    pub fn build(self) -> Result<Automaton, String> {
        self.build_within(MAX_STEPS)
    }

    /// The same of at most so many steps.
    pub fn build_within(mut self, most_steps: usize) -> Result<Automaton, String> {
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
            if self.places.len().saturating_mul(width) > most_steps {
                return Err("the layout has too many columns with delimiters of their own".to_owned());
            }
        }
        let modes: Vec<Mode> = self.places.iter().map(|(mode, _, _)| *mode).collect();
        let partial = self.places.iter().map(|(_, _, begun)| !begun.is_empty()).collect();
        let stops = (0..modes.len()).map(|state| Stops::of(state as u32, &steps[state * width..][..width], &tokens));
        let stops = stops.collect();
        Ok(Automaton { classes, width, steps, modes, partial, stops, tokens, is_lenient: self.is_lenient })
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
        let escape = self.escape.clone();
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
        let (mut text_behind, mut stray) = (false, false);
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
                    return Ok(Step { state, text_behind, stray, ..Step::default() });
                }
                ([token], None) => {
                    let (kind, length) = (token.kind, token.bytes.len() as u8);
                    return Ok(Step { text_behind, stray, ..self.complete(mode, column, kind, length) });
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
                // It is looked at again as what is in a field whose qualifier has not closed it, or in one without.
                Mode::BehindQualifier | Mode::BehindBlanks if self.is_lenient => (mode, stray) = (Mode::Inside, true),
                Mode::BehindQualifier | Mode::BehindBlanks => (mode, text_behind) = (Mode::Unqualified, true),
                _ => {
                    let data = rest.remove(0);
                    stray |= mode == Mode::Unqualified && self.fields[column].is_qualified && self.is_qualifier(data);
                    mode = behind_data(mode);
                    if rest.is_empty() {
                        let state = self.number((mode, column, Vec::new()));
                        return Ok(Step { state, text_behind, stray, ..Step::default() });
                    }
                }
            }
        }
    }

    fn is_qualifier(&self, byte: Option<u8>) -> bool {
        self.qualifier.as_ref().is_some_and(|qualifier| qualifier.bytes.as_slice() == byte.as_slice())
    }

    fn complete(&mut self, mode: Mode, column: usize, kind: Kind, length: u8) -> Step {
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
        Step { state: self.number((mode, column, Vec::new())), event, length, ..Step::default() }
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
