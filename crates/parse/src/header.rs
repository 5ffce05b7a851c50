//! The header of a file: its first row, which names the columns.

use headrace_types::{Column, ExtraFields, Header, Layout, LayoutShape, RowEnd, RowEndInFields};

use crate::automaton::{Automaton, Event, Mode, START};

/// The first row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderRow {
    /// Its fields, without qualifiers, escapes and blanks around them.
    pub names: Vec<String>,
    /// First byte.
    pub start: usize,
    /// First byte behind its row end.
    pub next: usize,
    /// Comments and blank rows before it.
    pub skipped_lines: u64,
}

/// How far a text goes that ends before its header does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Comments and blank rows so far.
    pub skipped_lines: u64,
    /// First byte of the line behind them.
    pub line_start: usize,
    /// Where a qualifier has opened that is not closed.
    pub opened: Option<usize>,
}

/// What a text begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderSearch {
    /// A header.
    Found(HeaderRow),
    /// The text ends before the header does: more of it is wanted.
    More(Waiting),
    /// There is none: comments and blank rows at most, and so many lines of them.
    Nothing(u64),
    /// A header whose qualifier, at this byte behind so many lines, is never closed.
    Unclosed(usize, u64),
}

/// Looks for the header at the start of a text. `ended`: nothing follows behind the text.
///
/// # Errors
/// Why the layout means two things.
pub fn find_header(layout: &Layout, row_end: &RowEnd, text: &[u8], ended: bool) -> Result<HeaderSearch, String> {
    if let RowEnd::Every(bytes) = row_end {
        let next = text.len().min(*bytes as usize);
        return Ok(match text.len() {
            length if length < *bytes as usize && !ended => {
                HeaderSearch::More(Waiting { skipped_lines: 0, line_start: 0, opened: None })
            }
            0 => HeaderSearch::Nothing(0),
            _ => Reader { layout, row: Row::at(0), skipped_lines: 0 }.end_row(&text[..next], next),
        });
    }
    let automaton = Automaton::new(&header_layout(layout), row_end)?;
    let mut reader = Reader { layout, row: Row::at(0), skipped_lines: 0 };
    let mut state = START;
    for (at, &byte) in text.iter().enumerate() {
        let step = automaton.step(state, byte);
        state = step.state;
        let end = at + 1 - usize::from(step.length);
        match step.event {
            Event::Opened => (reader.row.opened, reader.row.is_qualified) = (at, true),
            Event::Delimiter => reader.end_field(&text[..end], at + 1),
            Event::RowEnd if end == reader.row.start => reader.skip_line(at + 1),
            Event::RowEnd => return Ok(reader.end_row(&text[..end], at + 1)),
            Event::CommentEnd => reader.skip_line(at + 1),
            Event::Nothing | Event::Closed | Event::Rewritten => {}
        }
    }
    let is_open = automaton.is_inside(state);
    Ok(match automaton.mode(state) {
        _ if !ended => HeaderSearch::More(Waiting {
            skipped_lines: reader.skipped_lines,
            line_start: reader.row.start,
            opened: is_open.then_some(reader.row.opened),
        }),
        _ if is_open => HeaderSearch::Unclosed(reader.row.opened, reader.skipped_lines),
        _ if reader.row.start == text.len() => HeaderSearch::Nothing(reader.skipped_lines),
        Mode::Comment => HeaderSearch::Nothing(reader.skipped_lines + 1),
        _ => {
            // Half of a row end, if it is none of a delimiter; with nothing before it a blank row.
            let step = automaton.step(state, b'\n');
            let is_cut = text.ends_with(b"\r") && step.event == Event::RowEnd && step.length == 2;
            if is_cut && reader.row.start + 1 == text.len() {
                return Ok(HeaderSearch::Nothing(reader.skipped_lines + 1));
            }
            reader.end_row(&text[..text.len() - usize::from(is_cut)], text.len())
        }
    })
}

/// How the fields of a header end.
fn header_layout(layout: &Layout) -> Layout {
    // Fields too many are what a header is looked at for.
    let mut own = Layout { extra_fields: ExtraFields::Reject, ..layout.clone() };
    if own.header == Header::ByName {
        // Which column a field is of, and how many there are, is what the names will say.
        own.columns.clear();
        own.row_end_in_fields = RowEndInFields::EndsRow;
    }
    own
}

/// A row on its way.
struct Row {
    start: usize,
    field_start: usize,
    /// Where the last qualifier opened.
    opened: usize,
    is_qualified: bool,
    names: Vec<String>,
}

impl Row {
    fn at(start: usize) -> Self {
        Row { start, field_start: start, opened: start, is_qualified: false, names: Vec::new() }
    }
}

struct Reader<'a> {
    layout: &'a Layout,
    row: Row,
    skipped_lines: u64,
}

impl Reader<'_> {
    fn skip_line(&mut self, next: usize) {
        self.skipped_lines += 1;
        self.row = Row::at(next);
    }

    /// `before`: the text up to the end of the field.
    fn end_field(&mut self, before: &[u8], next: usize) {
        let is_qualified = std::mem::take(&mut self.row.is_qualified);
        let name = self.name(&before[self.row.field_start..], is_qualified);
        self.row.names.push(name);
        self.row.field_start = next;
    }

    fn end_row(&mut self, before: &[u8], next: usize) -> HeaderSearch {
        if self.layout.shape != LayoutShape::Delimited {
            let names = placed_names(self.layout, &before[self.row.start..]);
            return HeaderSearch::Found(HeaderRow {
                names,
                start: self.row.start,
                next,
                skipped_lines: self.skipped_lines,
            });
        }
        let is_closed = self.layout.trailing_delimiter && self.row.field_start == before.len();
        if !is_closed || self.row.names.is_empty() {
            self.end_field(before, next);
        }
        let names = std::mem::take(&mut self.row.names);
        HeaderSearch::Found(HeaderRow { names, start: self.row.start, next, skipped_lines: self.skipped_lines })
    }

    /// The text that a field stands for.
    fn name(&self, field: &[u8], is_qualified: bool) -> String {
        let text = self.layout.encoding.shown(field);
        let mut rest = text.trim_matches([' ', '\t']);
        let qualifier = self.layout.qualifier.filter(|_| is_qualified);
        if let Some(inner) = qualifier.and_then(|qualifier| rest.strip_prefix(qualifier)?.strip_suffix(qualifier)) {
            rest = inner;
        }
        let mut name = String::with_capacity(rest.len());
        let mut characters = rest.chars().peekable();
        while let Some(character) = characters.next() {
            let is_escape = Some(character) == self.layout.escape && characters.peek().is_some();
            let is_doubled = Some(character) == qualifier && characters.peek() == Some(&character);
            let meant = if is_escape || is_doubled { characters.next() } else { None };
            name.push(meant.unwrap_or(character));
        }
        name.trim_matches([' ', '\t']).to_owned()
    }
}

/// What stands in a row at the places of the columns.
fn placed_names(layout: &Layout, row: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(row);
    let name = |column: &Column| {
        let (start, end) = column.place.map_or((0, 0), |place| (place.start as usize, place.end() as usize));
        let part = if layout.places_are_bytes() {
            layout.encoding.shown(&row[start.min(row.len())..end.min(row.len())])
        } else {
            text.chars().skip(start).take(end - start).collect()
        };
        part.trim_matches([' ', '\t']).to_owned()
    };
    layout.columns.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::ColumnType;

    fn layout() -> Layout {
        let columns = ["a", "b"].map(|name| Column::new(name, ColumnType::Int32, true)).to_vec();
        Layout { delimiter: ",".to_owned(), qualifier: Some('"'), columns, ..Layout::default() }
    }

    fn find(layout: &Layout, text: &str, ended: bool) -> HeaderSearch {
        find_header(layout, &RowEnd::Either, text.as_bytes(), ended).unwrap()
    }

    fn names(layout: &Layout, text: &str) -> (Vec<String>, usize, usize, u64) {
        match find(layout, text, true) {
            HeaderSearch::Found(HeaderRow { names, start, next, skipped_lines }) => (names, start, next, skipped_lines),
            other => panic!("{other:?}"),
        }
    }

    fn found(expected: &[&str], start: usize, next: usize, lines: u64) -> (Vec<String>, usize, usize, u64) {
        (expected.iter().map(|name| (*name).to_owned()).collect(), start, next, lines)
    }

    #[test]
    fn the_first_row_is_the_header() {
        let layout = layout();
        assert_eq!(names(&layout, "a,b\r\n1,2\r\n"), found(&["a", "b"], 0, 5, 0));
        assert_eq!(names(&layout, "a,b"), found(&["a", "b"], 0, 3, 0));
        assert_eq!(names(&layout, "a,b\r"), found(&["a", "b"], 0, 4, 0));
        assert_eq!(names(&layout, "\"a \"\"x\"\"\n,\" , b ,\n"), found(&["a \"x\"\n,", "b", ""], 0, 18, 0));
        assert_eq!(names(&layout, "\n\r\na\n"), found(&["a"], 3, 5, 2), "blank rows");
    }

    #[test]
    fn comments_and_trailing_delimiters_are_none_of_it() {
        let other = Layout {
            comment: Some("#".to_owned()),
            escape: Some('\\'),
            trailing_delimiter: true,
            extra_fields: ExtraFields::Reject,
            ..layout()
        };
        assert_eq!(names(&other, "#x,\n#\na\\,,b,\n"), found(&["a,", "b"], 6, 13, 2));
        assert_eq!(names(&other, ",\n"), found(&[""], 0, 2, 0));
        assert_eq!(find(&other, "#x\n\n#y", true), HeaderSearch::Nothing(3));
    }

    #[test]
    fn fields_that_are_found_by_their_names_end_alike() {
        let named = Layout { header: Header::ByName, ..layout() };
        let data = Layout { row_end_in_fields: RowEndInFields::Data, ..named.clone() };
        assert_eq!(names(&data, "a,other,b\n1,x,2\n"), found(&["a", "other", "b"], 0, 10, 0));
        let mut bare = named;
        bare.columns[1].qualified = false;
        assert_eq!(names(&bare, "b,\"a\"\n"), found(&["b", "a"], 0, 6, 0));
    }

    #[test]
    fn a_delimiter_that_ends_as_half_a_row_end_does() {
        let layout = Layout { delimiter: "|\r".to_owned(), ..layout() };
        assert_eq!(names(&layout, "a|\r"), found(&["a", ""], 0, 3, 0));
        assert_eq!(names(&layout, "a|\rb\r"), found(&["a", "b"], 0, 5, 0));
    }

    #[test]
    fn what_is_no_header() {
        let waiting =
            |skipped_lines, line_start, opened| HeaderSearch::More(Waiting { skipped_lines, line_start, opened });
        assert_eq!(find(&layout(), "a,b", false), waiting(0, 0, None));
        assert_eq!(find(&layout(), "", true), HeaderSearch::Nothing(0));
        assert_eq!(find(&layout(), "\n\r\n", true), HeaderSearch::Nothing(2));
        assert_eq!(find(&layout(), "\n\r", true), HeaderSearch::Nothing(2), "half of a row end");
        assert_eq!(find(&layout(), "a,\"b\n1,2\n", true), HeaderSearch::Unclosed(2, 0));
    }
}
