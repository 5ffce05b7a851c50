//! What stands before the first row of a file: lines to skip, comments and blank rows behind them, a header.

use headrace_parse::{HeaderSearch, Waiting, find_header};
use headrace_types::{
    CoreError, ErrorKind, ExtraFields, Header, Layout, Location, MixedRowEnds, OtherColumns, RowEnd, RowEndInFields,
    RowEnds,
};

use super::{WINDOW_BYTES, refused, scanner};
use crate::source::ByteSource;
use crate::spec::Margin;

/// A longer header is none: a qualifier is missing, or a row end is another one.
const MOST_HEADER_BYTES: usize = 16 << 20;
/// Characters of a name that messages show.
const SHOWN_CHARACTERS: usize = 60;

/// Columns of the layout by field of the file.
pub type Fields = Option<Vec<Option<usize>>>;

/// Reads up to a place, or to the end of a text that is shorter: the bytes read.
///
/// # Errors
/// Those of reading.
pub fn discard(source: &mut dyn ByteSource, bytes: u64) -> Result<u64, CoreError> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut left = bytes;
    while left > 0 {
        let wanted = WINDOW_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX));
        match source.read(&mut window[..wanted])? {
            0 => break,
            count => left -= count as u64,
        }
    }
    Ok(bytes - left)
}

/// The lines that the layout skips, each up to its row end, whatever is in them. Reads more than these lines. `begin` is the place of the
/// first one.
///
/// # Errors
/// Those of reading; `Source` when no line of the text ends as the layout says, and some end otherwise: such a file would be one
/// without rows.
pub fn skip_lines(source: &mut dyn ByteSource, begin: &HeadPlace<'_>, layout: &Layout) -> Result<Margin, CoreError> {
    let line_end = match &layout.row_end {
        RowEnds::Exactly(text) => layout.encoded(text),
        RowEnds::Auto => b"\n".to_vec(),
        RowEnds::None => return skip_rows(source, layout),
    };
    let encoding = layout.encoding;
    let finder = memchr::memmem::Finder::new(&line_end);
    let mut window = vec![0; WINDOW_BYTES];
    let mut skipped = Margin::default();
    let mut breaks = OtherBreaks::default();
    // Bytes of the window that may be the beginning of a line end.
    let mut kept = 0;
    // Bytes of the file before them.
    let mut start = 0_u64;
    while skipped.lines < u64::from(layout.skip_lines) {
        let count = source.read(&mut window[kept..])?;
        if count == 0 {
            if let Some(found) = breaks.found.filter(|_| skipped.lines == 0) {
                let place = Location {
                    file: begin.path.to_owned(),
                    row: Some(1),
                    byte: Some(begin.byte),
                    ..Location::default()
                };
                return Err(CoreError::new(ErrorKind::Source, "a file ends within the lines that are skipped")
                    .at(place)
                    .found(format!("{}s, and no row end as the layout says", break_name(found).0))
                    .expected(match layout.skip_lines {
                        1 => "a line to skip".to_owned(),
                        lines => format!("{lines} lines to skip"),
                    })
                    .hint(row_end_hint(Some(found))));
            }
            // A last line without line end.
            let end = start + encoding.source_bytes(&window[..kept]);
            skipped.lines += u64::from(skipped.bytes < end);
            skipped.bytes = end;
            break;
        }
        let text = &window[..kept + count];
        let mut at = 0;
        while skipped.lines < u64::from(layout.skip_lines)
            && let Some(found) = finder.find(&text[at..])
        {
            at += found + line_end.len();
            skipped = Margin { bytes: start + encoding.source_bytes(&text[..at]), lines: skipped.lines + 1 };
        }
        kept = (line_end.len() - 1).min(text.len() - at);
        let length = text.len();
        breaks.look(&text[at..length - kept]);
        start += encoding.source_bytes(&text[..length - kept]);
        window.copy_within(length - kept..length, 0);
    }
    Ok(skipped)
}

/// Line breaks that do not end a line.
#[derive(Default)]
struct OtherBreaks {
    /// The first one.
    found: Option<u8>,
    /// The first one, if it is the last byte so far: the line may end there.
    last: Option<u8>,
}

impl OtherBreaks {
    /// Looks at the next bytes of the line.
    fn look(&mut self, text: &[u8]) {
        if text.is_empty() || self.found.is_some() {
            return;
        }
        self.found = self.last.take();
        match memchr::memchr2(b'\n', b'\r', text) {
            Some(at) if self.found.is_none() && at + 1 < text.len() => self.found = Some(text[at]),
            Some(at) if self.found.is_none() => self.last = Some(text[at]),
            _ => {}
        }
    }
}

/// What a line break is called, and the setting for it.
fn break_name(byte: u8) -> (&'static str, &'static str) {
    if byte == b'\n' { ("line feed", "lf") } else { ("carriage return", "cr") }
}

/// What to do about rows that never end, in a text with this line break.
fn row_end_hint(found: Option<u8>) -> String {
    match found.map(break_name) {
        Some((name, setting)) => {
            format!("Correct `row_end` of the layout: the text has {name}s, `row_end: {setting}`.")
        }
        None => {
            "Correct `row_end` of the layout, or take the file out of the source: its first row is none.".to_owned()
        }
    }
}

/// The line break that ends rows in a text without any row end of the layout. `None` if the text has such a row end, or if no line break
/// divides it.
fn other_break(layout: &Layout, row_end: &RowEnd, text: &[u8]) -> Option<u8> {
    let own = match row_end {
        RowEnd::Every(_) => return None,
        RowEnd::Exactly(end) => layout.encoded(end),
        RowEnd::Lf | RowEnd::Either | RowEnd::OnlyLf | RowEnd::OnlyCrlf => b"\n".to_vec(),
    };
    if memchr::memmem::find(text, &own).is_some() {
        return None;
    }
    [b'\n', b'\r'].into_iter().find(|&byte| {
        let other = RowEnd::Exactly(char::from(byte).to_string());
        // A layout that means two things with such row ends has none of them.
        matches!(find_header(layout, &other, text, true), Ok(HeaderSearch::Found(header)) if header.next < text.len())
    })
}

/// The same for rows without row ends: so many of them.
fn skip_rows(source: &mut dyn ByteSource, layout: &Layout) -> Result<Margin, CoreError> {
    let row_bytes = u64::from(layout.row_width().max(1));
    let bytes = discard(source, row_bytes * u64::from(layout.skip_lines))?;
    Ok(Margin { bytes, lines: bytes.div_ceil(row_bytes) })
}

/// How rows end: as the layout says, or if that leaves only one, as the first row does, however long it is: `source` is read from
/// there.
///
/// # Errors
/// Those of reading; `Specification` for a layout that means two things.
pub fn row_end(source: &mut dyn ByteSource, layout: &Layout) -> Result<RowEnd, CoreError> {
    if let Some(known) = layout.known_row_end() {
        return Ok(known);
    }
    if layout.mixed_row_ends == MixedRowEnds::Accept {
        return Ok(RowEnd::Either);
    }
    let mut scanner = scanner(layout, &RowEnd::Either)?;
    let mut window = vec![0; WINDOW_BYTES];
    let mut previous = 0;
    loop {
        let count = source.read(&mut window)?;
        if count == 0 {
            return Ok(RowEnd::Either);
        }
        if let Some(found) = scanner.next_row_end(&window[..count]) {
            let before = if found > 0 { window[found - 1] } else { previous };
            return Ok(if before == b'\r' { RowEnd::OnlyCrlf } else { RowEnd::OnlyLf });
        }
        previous = window[count - 1];
    }
}

/// Where a header may begin.
pub struct HeadPlace<'a> {
    /// The file.
    pub path: &'a str,
    /// Place in its text.
    pub byte: u64,
    /// Lines before it.
    pub lines: u64,
}

/// The header, with comments and blank rows before it, and the order of the fields if it says so. Reads further than that.
///
/// # Errors
/// Those of reading; `Source` when the header is missing, has no end, or is not what the layout says; `Specification` for a layout
/// that means two things.
pub fn read_header(
    source: &mut dyn ByteSource,
    begin: &HeadPlace<'_>,
    layout: &Layout,
    row_end: &RowEnd,
) -> Result<(Margin, Fields), CoreError> {
    if layout.header == Header::None {
        return Ok((Margin::default(), None));
    }
    let place = |lines: u64, before: &[u8]| Location {
        file: begin.path.to_owned(),
        row: Some(begin.lines + lines + 1),
        byte: Some(begin.byte + layout.encoding.source_bytes(before)),
        ..Location::default()
    };
    let failed = |what: &str| CoreError::new(ErrorKind::Source, what);
    let (mut text, mut ended) = (Vec::new(), false);
    loop {
        let mut length = text.len();
        text.resize((2 * length).max(WINDOW_BYTES), 0);
        while length < text.len() && !ended {
            let count = source.read(&mut text[length..])?;
            ended = count == 0;
            length += count;
        }
        text.truncate(length);
        let found = find_header(layout, row_end, &text, ended).map_err(refused)?;
        let is_all = match &found {
            HeaderSearch::Found(header) => header.next == text.len(),
            found => matches!(found, HeaderSearch::Nothing(_)),
        };
        // Lines before it have ended as the layout says.
        if ended
            && is_all
            && begin.lines == 0
            && layout.header == Header::Skip
            && let Some(byte) = other_break(layout, row_end, &text)
        {
            return Err(failed("the header of a file never ends")
                .at(place(0, &[]))
                .found(format!("{}s, and no row end as the layout says", break_name(byte).0))
                .expected("a row with the names of the columns")
                .hint(row_end_hint(Some(byte))));
        }
        match found {
            HeaderSearch::Found(header) => {
                let fields = match layout.header {
                    Header::Check => check(layout, &header.names).map(|()| None),
                    Header::ByName => by_name(layout, &header.names).map(Some),
                    Header::Skip | Header::None => Ok(None),
                };
                let fields =
                    fields.map_err(|unlike| unlike.error().at(place(header.skipped_lines, &text[..header.start])))?;
                return Ok((
                    Margin {
                        bytes: layout.encoding.source_bytes(&text[..header.next]),
                        lines: header.skipped_lines + 1,
                    },
                    fields,
                ));
            }
            HeaderSearch::Nothing(lines) if layout.header == Header::Skip => {
                return Ok((Margin { bytes: layout.encoding.source_bytes(&text), lines }, None));
            }
            HeaderSearch::Nothing(lines) => {
                return Err(failed("a file has no header")
                    .at(place(lines, &text))
                    .found(if text.is_empty() { "the end of the file" } else { "comments and blank rows only" })
                    .expected("a row with the names of the columns")
                    .hint("Take the file out of the source, or set `header: skip`: then a file may be empty."));
            }
            HeaderSearch::Unclosed(byte, lines) => {
                return Err(failed("the header of a file never ends")
                    .at(place(lines, &text[..byte]))
                    .found("a qualifier that is not closed")
                    .hint("Set `skip_lines` to the number of lines before the header."));
            }
            HeaderSearch::More(waiting) if text.len() >= MOST_HEADER_BYTES => {
                let Endless { at, found, hint } = endless(layout, &text, waiting);
                return Err(failed("the header of a file never ends")
                    .at(place(waiting.skipped_lines, &text[..at]))
                    .found(format!("{found} in {} MB", MOST_HEADER_BYTES >> 20))
                    .expected("a row with the names of the columns")
                    .hint(hint));
            }
            HeaderSearch::More(_) => {}
        }
    }
}

/// Why there is no header in as much text as one may have.
struct Endless {
    /// Where it should end, or begin.
    at: usize,
    found: &'static str,
    hint: String,
}

fn endless(layout: &Layout, text: &[u8], waiting: Waiting) -> Endless {
    let behind = &text[waiting.line_start..];
    let own = |text: &str| text.to_owned();
    let (at, found, hint) = if let Some(opened) = waiting.opened {
        (opened, "a qualifier that is not closed", own("Set `skip_lines` to the number of lines before the header."))
    } else if waiting.line_start > text.len() / 2 {
        let hint = "Set `skip_lines` to the number of lines before the header, or correct `comment` of the layout.";
        (waiting.line_start, "comments and blank rows only", own(hint))
    } else if layout.row_end_in_fields == RowEndInFields::Data {
        let hint =
            "Correct the delimiters of the layout: with `row_end_in_fields: data` a row ends in its last column only.";
        (waiting.line_start, "no row end", own(hint))
    } else {
        let is_there = |byte: &u8| memchr::memchr(*byte, behind).is_some();
        (waiting.line_start, "no row end", row_end_hint([b'\n', b'\r'].into_iter().find(is_there)))
    };
    Endless { at, found, hint }
}

/// Why a header is not that of the layout.
struct Unlike {
    found: String,
    expected: String,
    hint: &'static str,
}

impl Unlike {
    fn error(self) -> CoreError {
        CoreError::new(ErrorKind::Source, "the header of a file does not fit its layout")
            .found(self.found)
            .expected(self.expected)
            .hint(self.hint)
    }
}

/// Databases compare the names of columns without regard to case, and so does the layout itself.
fn is_same(name: &str, other: &str) -> bool {
    name == other || name.to_lowercase() == other.to_lowercase()
}

fn shown(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    format!("`{cut}{}`", if name.chars().count() > SHOWN_CHARACTERS { "…" } else { "" })
}

/// Whether the names are those of the columns, in their order.
fn check(layout: &Layout, names: &[String]) -> Result<(), Unlike> {
    let columns = &layout.columns;
    let kept = layout.extra_fields == ExtraFields::Keep && names.len() > columns.len();
    let names = if kept { &names[..columns.len()] } else { names };
    let is_in_file = |name: &str| names.iter().any(|own| is_same(own, name));
    let is_reordered = names.len() == columns.len() && columns.iter().all(|column| is_in_file(&column.name));
    let hint = match is_reordered {
        true => "Set `header: by_name`: then fields are found by their names.",
        false => "Correct the layout, or set `header: skip`: then the header may say anything.",
    };
    for (number, (name, column)) in std::iter::zip(names, columns).enumerate() {
        if !is_same(name, &column.name) {
            return Err(Unlike {
                found: format!("field {} is {}", number + 1, shown(name)),
                expected: shown(&column.name),
                hint,
            });
        }
    }
    let count = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    if names.len() != columns.len() {
        let next = names.get(columns.len()).map(|name| format!("; the first too many is {}", shown(name)));
        let missing = columns.get(names.len()).map(|column| format!("; the next one is {}", shown(&column.name)));
        return Err(Unlike {
            found: count(names.len(), "field") + &next.unwrap_or_default(),
            expected: count(columns.len(), "field") + &missing.unwrap_or_default(),
            hint,
        });
    }
    Ok(())
}

/// The column that each field is of.
fn by_name(layout: &Layout, names: &[String]) -> Result<Vec<Option<usize>>, Unlike> {
    let column_of = |name: &String| layout.columns.iter().position(|column| is_same(name, &column.name));
    let fields: Vec<Option<usize>> = names.iter().map(column_of).collect();
    for (index, column) in layout.columns.iter().enumerate() {
        let own: Vec<usize> = (0..fields.len()).filter(|&field| fields[field] == Some(index)).collect();
        let found = match own[..] {
            [_] => continue,
            [] => format!("no field {}", shown(&column.name)),
            [first, second, ..] => format!("fields {} and {} are both {}", first + 1, second + 1, shown(&column.name)),
        };
        return Err(Unlike {
            found,
            expected: "every column of the layout once".to_owned(),
            hint: "Correct the header, or the names of the layout.",
        });
    }
    let other = fields.iter().position(Option::is_none).filter(|_| layout.other_columns == OtherColumns::Refuse);
    if let Some(field) = other {
        return Err(Unlike {
            found: format!("field {} is {}", field + 1, shown(&names[field])),
            expected: "names of columns of the layout only".to_owned(),
            hint: "Set `other_columns: ignore` to leave such fields out.",
        });
    }
    // A column that keeps the rest of the row is no other one in a file that has them in another order.
    let keeper = layout.columns.len().checked_sub(1).filter(|_| layout.extra_fields == ExtraFields::Keep);
    match (keeper, names.last()) {
        (Some(column), Some(name)) if fields.last() != Some(&keeper) => Err(Unlike {
            found: format!("the last field is {}", shown(name)),
            expected: format!("{}, which keeps the rest of the row", shown(&layout.columns[column].name)),
            hint: "Set `extra_fields: reject`, or put the last field of the file at the end of the layout.",
        }),
        _ => Ok(fields),
    }
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, ColumnType};

    use super::*;
    use crate::slices::{SlicingSpec, plan_slices};
    use crate::spec::FileSpec;

    fn layout(header: Header) -> Layout {
        let columns = ["id", "name", "price"].map(|name| Column::new(name, ColumnType::String, true));
        Layout { delimiter: "|".to_owned(), header, columns: columns.to_vec(), ..Layout::default() }
    }

    fn plan(text: &[u8], layout: &Layout) -> Result<FileSpec, CoreError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let files = vec![path.to_str().unwrap().to_owned()];
        let mut slicing =
            plan_slices(&SlicingSpec { files, slice_bytes: 9, layout: layout.clone(), ..SlicingSpec::default() })?;
        let file = slicing.files.remove(0);
        let begins = slicing.slices.first().map(|slice| slice.begin_byte);
        assert_eq!(begins, Some(file.first_byte).filter(|first| *first < text.len() as u64));
        Ok(file)
    }

    /// What a header is refused for, and where.
    fn refusal(text: &str, layout: &Layout) -> String {
        let error = plan(text.as_bytes(), layout).unwrap_err();
        let at = error.at.unwrap();
        let words = [error.found.unwrap(), error.expected.unwrap_or_default()];
        format!("{}:{} {}", at.row.unwrap(), at.byte.unwrap(), words.join(" / "))
    }

    #[test]
    fn lines_are_skipped_whatever_stands_in_them() {
        for (lines, text, bytes, found) in
            [(0, "a|b|c\n", 0, 0), (2, "\"open\n|||\na|b|c\n", 10, 2), (3, "a\r\nb", 4, 2), (1, "\n\n", 1, 1)]
        {
            let file =
                plan(text.as_bytes(), &Layout { skip_lines: lines, qualifier: Some('"'), ..layout(Header::None) });
            assert_eq!(file.unwrap().head, Margin { bytes, lines: found }, "{text}");
        }
        let own = Layout { row_end: RowEnds::Exactly("<>".to_owned()), skip_lines: 2, ..layout(Header::Skip) };
        assert_eq!(plan(b"a\n<><<>id<>1", &own).unwrap().head, Margin { bytes: 11, lines: 3 });
        // Line ends over the end of a window, and lines longer than one.
        for length in WINDOW_BYTES - 3..WINDOW_BYTES + 3 {
            let text = ["x".repeat(length), "x".repeat(3 * length), "id<>".to_owned()].join("<>");
            assert_eq!(plan(text.as_bytes(), &own).unwrap().head.bytes, text.len() as u64);
        }
        // Row ends are those of the first row behind them.
        let marked = plan(b"\xEF\xBB\xBFtitle\r\nid\n1\n", &Layout { skip_lines: 1, ..layout(Header::Skip) }).unwrap();
        assert_eq!(
            (marked.head, marked.first_byte, marked.row_end),
            (Margin { bytes: 10, lines: 2 }, 3, RowEnd::Either)
        );
    }

    #[test]
    fn a_file_whose_rows_all_end_otherwise_is_no_file_without_rows() {
        let exactly = |row_end: &str| RowEnds::Exactly(row_end.to_owned());
        let skipping = |row_end, lines| Layout { row_end, skip_lines: lines, ..layout(Header::None) };
        let headed = |row_end| Layout { row_end, comment: Some("#".to_owned()), ..layout(Header::Skip) };
        let long = format!("{}\n1|2|3\n", "x".repeat(WINDOW_BYTES - 1));
        for (text, layout, expected) in [
            (
                "t\n1|2|3\n",
                skipping(exactly("\r\n"), 1),
                "1:0 line feeds, and no row end as the layout says / a line to skip",
            ),
            (
                "t\r1|2|3\r",
                skipping(RowEnds::Auto, 1),
                "1:0 carriage returns, and no row end as the layout says / a line to skip",
            ),
            (&long, skipping(exactly("\r\n"), 1), "1:0 line feeds, and no row end as the layout says / a line to skip"),
            (
                "id\n1|2|3\n",
                headed(exactly("\r\n")),
                "1:0 line feeds, and no row end as the layout says / a row with the names of the columns",
            ),
            (
                "id\r1|2|3\r",
                headed(RowEnds::Auto),
                "1:0 carriage returns, and no row end as the layout says / a row with the names of the columns",
            ),
            (
                "#x\nid\n1|2|3\n",
                headed(exactly("\r\n")),
                "1:0 line feeds, and no row end as the layout says / a row with the names of the columns",
            ),
        ] {
            assert_eq!(refusal(text, &layout), expected, "{text:.40}");
        }
        // A last line may lack its end, or a part of it; a header may be all there is.
        for (text, layout) in [
            ("t\n", skipping(exactly("\r\n"), 1)),
            ("t\r", skipping(RowEnds::Auto, 1)),
            ("t", skipping(RowEnds::Auto, 3)),
            ("a\r\nb\r", skipping(exactly("\r\n"), 2)),
            ("id\n", headed(exactly("\r\n"))),
            ("id\r\n#x\r\n", headed(RowEnds::Auto)),
            ("id|name\r\n", headed(RowEnds::Auto)),
            ("id|name\r\n", headed(exactly("\r\n"))),
            ("\r\n#c\r\nid|name\r\n", headed(exactly("\r\n"))),
            ("id|na\rme\n", headed(RowEnds::Auto)),
            ("title\nid|na\rme", Layout { skip_lines: 1, ..headed(RowEnds::Auto) }),
            ("id\n(key)|name~", headed(exactly("~"))),
            ("t\r\nu\nv\r\n", skipping(exactly("\r\n"), 3)),
        ] {
            assert!(plan(text.as_bytes(), &layout).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_header_that_is_checked_has_the_names_of_the_columns() {
        let check = Layout { comment: Some("#".to_owned()), skip_lines: 1, ..layout(Header::Check) };
        let file = plan(b"report\n\r\n#x\nID| name |Price\r\n1|a|2\r\n", &check).unwrap();
        assert_eq!((file.head, file.columns), (Margin { bytes: 29, lines: 4 }, None));
        for (text, expected) in [
            ("t\nid|nam|price\n", "2:2 field 2 is `nam` / `name`"),
            ("t\n\nid|name\n", "3:3 2 fields / 3 fields; the next one is `price`"),
            ("t\nid|name|price|x\n", "2:2 4 fields; the first too many is `x` / 3 fields"),
            ("t\n", "2:2 the end of the file / a row with the names of the columns"),
            ("t\n#\n", "3:4 comments and blank rows only / a row with the names of the columns"),
        ] {
            assert_eq!(refusal(text, &check), expected);
        }
        let long = format!("t\n{}|name|price\n", "x".repeat(100));
        assert!(refusal(&long, &check).contains(&format!("`{}…`", "x".repeat(60))));
        // The last column keeps what its name may say no more.
        let kept = Layout { extra_fields: ExtraFields::Keep, skip_lines: 0, ..check.clone() };
        assert!(plan(b"id|name|price|more|\n", &kept).is_ok());
        let open = Layout { qualifier: Some('"'), ..check };
        assert_eq!(refusal("t\nid|\"name\n1|2|3\n", &open), "2:5 a qualifier that is not closed / ");
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let named = layout(Header::ByName);
        let fields = |text: &str, layout: &Layout| plan(text.as_bytes(), layout).unwrap().columns.unwrap();
        assert_eq!(fields("price|ID|Name\n", &named), [Some(2), Some(0), Some(1)]);
        let ignored = Layout { other_columns: OtherColumns::Ignore, ..named.clone() };
        assert_eq!(fields("x|price||ID|Name\n", &ignored), [None, Some(2), None, Some(0), Some(1)]);
        let kept = Layout { extra_fields: ExtraFields::Keep, ..ignored.clone() };
        assert_eq!(fields("x|name|ID|price\n", &kept), [None, Some(1), Some(0), Some(2)]);
        for last in ["name", "x"] {
            let header = format!("id|price|name|{last}\n").replace("name|name", "name");
            let expected = format!("1:0 the last field is `{last}` / `price`, which keeps the rest of the row");
            assert_eq!(refusal(&header, &kept), expected);
        }
        for (text, expected) in [
            ("price|id\n", "1:0 no field `name` / every column of the layout once"),
            ("price|id|name|ID\n", "1:0 fields 2 and 4 are both `id` / every column of the layout once"),
            ("price|id|name|x\n", "1:0 field 4 is `x` / names of columns of the layout only"),
            ("", "1:0 the end of the file / a row with the names of the columns"),
        ] {
            assert_eq!(refusal(text, &named), expected);
        }
    }

    #[test]
    fn a_header_without_end_is_refused() {
        let long = |piece: &str| piece.repeat(MOST_HEADER_BYTES / piece.len() + 1);
        let refused = |text: &str, layout: &Layout| {
            let error = plan(text.as_bytes(), layout).unwrap_err();
            (error.at.unwrap().byte.unwrap(), error.found.unwrap(), error.hint.unwrap())
        };
        let skip = Layout { comment: Some("#".to_owned()), ..layout(Header::Skip) };
        let exact = |row_end: &str| Layout { row_end: RowEnds::Exactly(row_end.to_owned()), ..skip.clone() };
        let bcp = Layout { row_end_in_fields: RowEndInFields::Data, ..skip.clone() };
        let open = Layout { qualifier: Some('"'), ..skip.clone() };
        for (text, layout, byte, found, hint) in [
            (long("x"), &skip, 0, "no row end", "its first row is none"),
            ("#c\n".to_owned() + &long("x\r"), &skip, 3, "no row end", "`row_end: cr`"),
            (long("x\n"), &exact("\r\n"), 0, "no row end", "`row_end: lf`"),
            (long("x,y\n"), &bcp, 0, "no row end", "delimiters"),
            ("x|\"".to_owned() + &long("y\n"), &open, 2, "a qualifier that is not closed", "`skip_lines`"),
        ] {
            let refused = refused(&text, layout);
            assert_eq!((refused.0, refused.1.as_str()), (byte, format!("{found} in 16 MB").as_str()));
            assert!(refused.2.contains(hint), "{}", refused.2);
        }
        let comments = refused(&long("# comment\n"), &skip);
        assert_eq!(comments.1, "comments and blank rows only in 16 MB");
        assert!(comments.2.contains("`skip_lines`"));
        assert_eq!(plan(b"", &layout(Header::Skip)).unwrap().head, Margin::default());
    }
}
