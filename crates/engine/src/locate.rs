//! The place of a loaded row in its file, found by reading its block again. A destination that refuses a row counts rows from
//! the start of a COPY; nobody keeps the places of all rows for that rare case.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use headrace_transform::partition::OUTSIDE;
use headrace_types::{CoreError, ErrorKind, Location};

use crate::line_parser::{Line, LineParser, LinesBefore};
use crate::report::SliceReport;
use crate::routing::Router;
use crate::row_numbers::first_lines;
use crate::sink::Origin;
use crate::source::read_again;
use crate::spec::{FlowSpec, SliceSpec};
use crate::transforms::{Remaining, Transforms};
use crate::unified::Unified;

/// Which lines are rows to count.
#[derive(Clone, Copy)]
pub struct Counted<'a> {
    /// The only columns that have to convert; none for all.
    pub columns: Option<&'a [usize]>,
    /// What they have to pass.
    pub transforms: &'a Transforms,
    /// Where rows have to go; none for anywhere.
    pub place: Option<u32>,
}

/// Where the row `row` (from 0, of those that are `counted`) of the batch that came from `origin` stands.
/// `None` if the block has no such row (any more). Of a stream only its name is known.
/// The lines of slices that have `ended` are known, those of others before it are counted in the file.
///
/// # Errors
/// Those of reading the source.
pub fn locate(
    spec: &FlowSpec,
    ended: &[SliceReport],
    origin: Origin,
    row: u64,
    counted: Counted<'_>,
) -> Result<Option<Location>, CoreError> {
    let Some(slice) = spec.source.slices.iter().find(|slice| slice.number == origin.slice) else { return Ok(None) };
    let file = &spec.source.files[slice.file];
    let text = read_block(spec, slice, origin)?;
    if file.stream.is_some() {
        // It cannot be read again.
        return Ok(Some(Location { file: file.path.clone(), ..Location::default() }));
    }
    let layout = spec.layout_of(slice.file);
    let source = spec.union.as_ref().map(|_| spec.source_of_file(slice.file));
    let unified = |(union, source)| Unified::new(spec, union, source, counted.columns);
    let unified = spec.union.as_deref().zip(source).map(unified).transpose()?;
    let columns = unified.as_ref().map(Unified::wanted).or(counted.columns);
    let lines =
        LinesBefore { in_file: first_lines(spec, ended, &[slice.number])?[&slice.number], in_slice: origin.first_line };
    let mut parser = LineParser::of_slice(layout, file, columns, slice, lines)?;
    let mut scanner = file.scanner(layout)?;
    // Line and first byte of each row, and the rows.
    let (mut places, mut batches) = (Vec::new(), Vec::new());
    let (mut start, mut at_byte) = (0, origin.at_byte);
    for line in 0.. {
        let rest = &text[start..];
        let length = match scanner.next_row_end(rest) {
            Some(end) => end + 1,
            None if rest.is_empty() => break,
            None => rest.len(),
        };
        if let Line::Row(batch) = parser.parse_at(at_byte, &rest[..length])? {
            places.push((line, at_byte));
            batches.push(batch);
        }
        start += length;
        at_byte += layout.encoding.source_bytes(&rest[..length]);
    }
    let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(None) };
    let internal = |error| CoreError::new(ErrorKind::Internal, format!("rows of a block: {error}"));
    let rows = concat_batches(&schema, &batches).map_err(internal)?;
    let mut in_front = Remaining::default();
    let rows = match source.and_then(|source| counted.transforms.front(source)) {
        Some(front) => front.apply(rows, &mut front.no_counts(), &mut in_front)?,
        None => Some(rows),
    };
    let Some(rows) = rows else { return Ok(None) };
    let rows = unified.map_or(Ok(rows.clone()), |unified| unified.rows(&rows))?;
    let router = Router::of(spec)?;
    let left = rows_that_go(rows, counted.transforms, router.as_ref(), counted.place)?;
    let Some(&number) = left.get(row as usize) else { return Ok(None) };
    let number = in_front.numbers().map_or(number, |numbers| numbers[number as usize]);
    let (line, at_byte) = places[number as usize];
    Ok(Some(Location {
        file: file.path.clone(),
        row: Some(lines.in_file + lines.in_slice + line + 1),
        byte: Some(at_byte),
        ..Location::default()
    }))
}

/// The numbers of the rows that pass the transforms and go to the place; to any place, if none is asked for.
pub fn rows_that_go(
    rows: RecordBatch,
    transforms: &Transforms,
    router: Option<&Router>,
    place: Option<u32>,
) -> Result<Vec<u32>, CoreError> {
    let mut remaining = Remaining::default();
    // What drops no rows leaves the columns in front of it where they are, so that the router finds its own.
    let left = match transforms.drop_rows() {
        true => transforms.apply(rows, &mut transforms.no_counts(), &mut remaining)?,
        false => Some(rows),
    };
    let Some(left) = left else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    if let Some(router) = router {
        router.places(&left, &mut places)?;
    }
    let goes = |row: &u32| {
        let own = places.get(*row as usize);
        own.is_none_or(|own| *own != OUTSIDE && place.is_none_or(|place| place == *own))
    };
    let number = |row: u32| remaining.numbers().map_or(row, |numbers| numbers[row as usize]);
    Ok((0..left.num_rows() as u32).filter(goes).map(number).collect())
}

fn read_block(spec: &FlowSpec, slice: &SliceSpec, origin: Origin) -> Result<Vec<u8>, CoreError> {
    let layout = spec.layout_of(slice.file);
    // Generated text can only be read from its start.
    let is_generated = spec.source.generate.is_some();
    let mut skip = if is_generated { origin.at_byte - slice.begin_byte } else { 0 };
    let mut source = read_again(&spec.source, layout, slice, origin.at_byte, Some(origin.at_byte + origin.bytes))?;
    // What was UTF-16 is longer by a half at most.
    let factor = if layout.encoding.is_utf16() { 2 } else { 1 };
    let mut text = vec![0; factor * origin.bytes as usize];
    let mut length = 0;
    while length < text.len() {
        let wanted = if skip > 0 { text.len().min(skip as usize) } else { text.len() };
        match source.read(&mut text[length..wanted])? {
            0 => break,
            count if skip > 0 => skip -= count as u64,
            count => length += count,
        }
    }
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::spec::{FileSpec, Margin, MemorySpec, RejectSpec, SourceSpec};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, UInt32Array};
    use headrace_types::{Column, ColumnType, Layout};

    /// A flow over `text`, cut behind the bytes `cuts`.
    fn flow(folder: &std::path::Path, text: &str, cuts: &[usize], qualifier: Option<char>) -> FlowSpec {
        let path = folder.join("file");
        std::fs::write(&path, text).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        let head_bytes = text.find('\n').map_or(text.len(), |at| at + 1);
        let file = FileSpec {
            path: path.to_str().unwrap().to_owned(),
            size_bytes: text.len() as u64,
            modified_ns: crate::source::modified_ns(&metadata),
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
            head: Margin { bytes: head_bytes as u64, lines: 1 },
            ..FileSpec::default()
        };
        let mut ends = vec![0];
        ends.extend(cuts);
        ends.push(text.len());
        let slices = std::iter::zip(1.., ends.windows(2));
        let slices = slices.map(|(number, range)| SliceSpec {
            number,
            file: 0,
            begin_byte: range[0] as u64,
            end_byte: range[1] as u64,
            ..SliceSpec::default()
        });
        let columns =
            vec![Column::new("key", ColumnType::Int32, false), Column::new("text", ColumnType::String, false)];
        let layout = Layout { delimiter: "|".to_owned(), qualifier, columns, ..Layout::default() };
        let source = SourceSpec { files: vec![file], slices: slices.collect(), ..SourceSpec::default() };
        let memory = MemorySpec { block_bytes: 4096, blocks: 1, max_row_bytes: 4096 };
        FlowSpec {
            rejects: RejectSpec { limit: Some(0), ..RejectSpec::default() },
            ..FlowSpec::plain("test", layout, source, 1, memory)
        }
    }

    fn place(spec: &FlowSpec, origin: Origin, row: u64) -> Option<(u64, u64)> {
        locate(spec, &[], origin, row, Counted { columns: None, transforms: &Transforms::default(), place: None })
            .unwrap()
            .map(|location| (location.row.unwrap(), location.byte.unwrap()))
    }

    #[test]
    fn only_rows_that_were_loaded_count() {
        let folder = tempfile::tempdir().unwrap();
        //          header    row 2  bad    blank row 5  row 6 without row end
        let text = "key|text\n1|one\nx|bad\n\n2|two\n3|three";
        let spec = flow(folder.path(), text, &[], None);
        let whole = Origin { slice: 1, first_line: 1, at_byte: 9, bytes: text.len() as u64 - 9 };
        assert_eq!(place(&spec, whole, 0), Some((2, 9)));
        assert_eq!(place(&spec, whole, 1), Some((5, 22)));
        assert_eq!(place(&spec, whole, 2), Some((6, 28)));
        assert_eq!(place(&spec, whole, 3), None);
        let second_block = Origin { slice: 1, first_line: 2, at_byte: 15, bytes: text.len() as u64 - 15 };
        assert_eq!(place(&spec, second_block, 0), Some((5, 22)));
    }

    #[test]
    fn rows_of_later_slices_are_counted_from_the_start_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = "key|text\n1|one\n2|two\n3|three\n";
        let spec = flow(folder.path(), text, &[15, 21], None);
        let origin = Origin { slice: 3, first_line: 0, at_byte: 21, bytes: 8 };
        assert_eq!(place(&spec, origin, 0), Some((4, 21)));

        // Not what stands in the file, so that it is seen who was asked.
        let (bytes, lines) = (6, 1000);
        let ended = SliceReport {
            stream: Some(1),
            bytes,
            lines,
            rows: lines,
            out: lines,
            ..SliceReport::new(&spec.source.slices[1])
        };
        let location = locate(
            &spec,
            &[ended],
            origin,
            0,
            Counted { columns: None, transforms: &Transforms::default(), place: None },
        )
        .unwrap()
        .unwrap();
        assert_eq!(location.row, Some(2 + 1000 + 1), "a slice that has ended is not read again");
    }

    #[test]
    fn row_ends_inside_qualifiers_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let text = "key|text\n1|\"a\nb\"\n2|\"c\"\"\n\"\n3|d\n";
        let spec = flow(folder.path(), text, &[], Some('"'));
        let origin = Origin { slice: 1, first_line: 1, at_byte: 9, bytes: text.len() as u64 - 9 };
        assert_eq!(place(&spec, origin, 1), Some((3, 17)));
        assert_eq!(place(&spec, origin, 2), Some((4, 26)));
    }

    #[test]
    fn rows_of_a_union_are_found_behind_what_stands_in_front_of_their_source() {
        let folder = tempfile::tempdir().unwrap();
        // Odd keys go on.
        let text = "key|text\n1|one\n2|two\nx|bad\n3|three\n4|four\n5|five\n";
        let mut spec = flow(folder.path(), text, &[], None);
        spec.transforms = serde_json::from_value(serde_json::json!([
            {"name": "named", "source": 0, "inputs": [{"transform": null}],
                "query": {"number": "row", "columns": [
                    {"name": "text", "type": {"kind": "string"}, "nullable": false, "from": "text"}]}},
        ]))
        .unwrap();
        spec.union = serde_json::from_value(serde_json::json!({
            "name": "all",
            "columns": [{"name": "text", "type": {"kind": "string"}, "nullable": false}],
            "sources": [{"name": "old", "first_file": 0, "places": [0]}],
            "inputs": [{"transform": 0}],
        }))
        .unwrap();
        spec.check().unwrap();
        let outcome = Arc::new(crate::outcome::Outcome::default());
        let transforms = Transforms::new(&spec, Vec::new(), outcome).unwrap();
        let origin = Origin { slice: 1, first_line: 1, at_byte: 9, bytes: text.len() as u64 - 9 };
        let has_ended = AtomicBool::new(false);
        let found: Vec<_> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(window) = transforms.windows().next(|| has_ended.load(Ordering::Relaxed)) {
                    let keys = window.rows.column(0).as_primitive::<Int32Type>();
                    let odd = keys.values().iter().zip(0..).filter(|(key, _)| *key % 2 != 0).map(|(_, row)| row);
                    let odd: ArrayRef = Arc::new(UInt32Array::from_iter_values(odd));
                    window.answer(Ok(vec![RecordBatch::try_from_iter([("row", odd)]).unwrap()]));
                }
            });
            let place = |row| {
                let counted = Counted { columns: None, transforms: &transforms, place: None };
                locate(&spec, &[], origin, row, counted).unwrap().map(|own| (own.row.unwrap(), own.byte.unwrap()))
            };
            let found = (0..4).map(place).collect();
            has_ended.store(true, Ordering::Relaxed);
            found
        });
        assert_eq!(found, [Some((2, 9)), Some((5, 27)), Some((7, 42)), None]);
    }
}
