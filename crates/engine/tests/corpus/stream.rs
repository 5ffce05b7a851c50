//! Target `stream`: a whole flow over a file, in blocks as small as they may be. What the parser alone does not do: text
//! carried from block to block, blocks that grow for a long row, rows beyond `max_row`, slices, merged rejects. All of it
//! against the reference parser, which gets every slice in one piece.

use headrace_engine::report::{FlowReport, Status};
use headrace_engine::slices::Slicing;
use headrace_engine::spec::{MemorySpec, SliceSpec};
use headrace_types::{Column, ColumnType, Layout};

use crate::input::Input;
use crate::place::{Place, located};
use crate::reference::{self, Outcome, Value};
use crate::refused::is_refused;

/// Eight of the smallest blocks.
const MOST_BYTES: usize = 32 * 1024;

/// Runs one file through a flow.
///
/// # Panics
/// When rows, rejects or accounts are not those of the reference.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let layout = layout(&mut input);
    let block_bytes = 4096 + usize::from(input.word()) % 1024;
    let max_row_bytes = block_bytes + [0, 1, 7, 300, 4096, 9000, 9000, 1 << 20][input.below(8)];
    let memory = MemorySpec { block_bytes, blocks: input.pick(&[1, 2, 3, 8]), max_row_bytes };
    let parts = input.pick(&[1, 1, 1, 2, 5, 17]);
    let mut writer = Writer { layout: &layout, memory: &memory, bytes: vec![], starts: vec![] };
    while !input.is_used_up() && writer.bytes.len() < MOST_BYTES {
        writer.step(&mut input);
    }
    let mut content = writer.bytes;
    content.truncate(MOST_BYTES);

    Place::with(|place| {
        let slicing = match place.write(&content, &layout, content.len() as u64 / parts + 1) {
            Ok(slicing) => slicing,
            Err(error) => return assert!(is_refused(&error, &content), "{error:?}"),
        };
        let (rows, report) = place.run(&layout, &slicing, memory);
        let about = || format!("{layout:?} {:?} {}", report.slices, content.escape_ascii());
        assert_eq!((report.status, &report.error), (Status::Ok, &None), "{}", about());
        let expected: Vec<Outcome> =
            slicing.slices.iter().map(|slice| expected(&layout, &slicing, slice, &content, max_row_bytes)).collect();
        check_accounts(&report, &slicing, &expected);
        let (rejects, bad) = located(&layout, &slicing, &expected);
        let found = place.rejects(&report);
        for (found, expected) in std::iter::zip(&found, &rejects) {
            assert_eq!(found, expected, "{}", about());
        }
        assert_eq!((found.len(), report.rejects.count), (rejects.len(), rejects.len() as u64), "{}", about());
        assert!(place.output(&report, "rejected.bad") == bad, "{}", about());
        // One stream takes the largest slice first, and of equal ones the first.
        let mut order: Vec<usize> = (0..expected.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(slicing.slices[index].bytes()));
        let expected: Vec<&Vec<Value>> = order.iter().flat_map(|&index| &expected[index].rows).collect();
        for (row, (found, expected)) in std::iter::zip(&rows, &expected).enumerate() {
            assert_eq!(found, *expected, "good row {row}, {}", about());
        }
        assert_eq!(rows.len(), expected.len(), "{}", about());
    });
}

/// One text column, the first or the last, among numbers.
fn layout(input: &mut Input<'_>) -> Layout {
    let flags = input.byte();
    let text = if flags & 1 == 0 { ColumnType::String } else { ColumnType::Varchar { length: 5000 } };
    let number = ColumnType::Int32;
    let types = [vec![text], vec![number, text], vec![text, number], vec![number, text, number]];
    let column = |(index, &column_type)| Column::new(format!("c{index}"), column_type, index != 0);
    Layout {
        delimiter: "|".to_owned(),
        qualifier: (flags & 8 != 0).then_some('"'),
        trailing_delimiter: flags & 16 != 0,
        skip_lines: [0, 0, 1, 2][usize::from(flags >> 5 & 3)],
        columns: types[usize::from(flags >> 1 & 3)].iter().enumerate().map(column).collect(),
        ..Layout::default()
    }
}

/// Writes the file: a little program of rows around the sizes that matter.
struct Writer<'a> {
    layout: &'a Layout,
    memory: &'a MemorySpec,
    bytes: Vec<u8>,
    /// Where rows start, as far as the writer knows.
    starts: Vec<usize>,
}

impl Writer<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        const FILLERS: &[&[u8]] = &[b"w", b"w", b"\n", b"|", b"\"\"", b"\n|\"\"", b"\r\n", b"\xC3\xA9", b"\"", b"\0"];
        match input.below(8) {
            0 | 1 => {
                let (rows, bytes, filler) = (1 + input.below(50), input.below(256), input.pick(FILLERS));
                for _ in 0..rows {
                    if self.bytes.len() < MOST_BYTES {
                        self.row(bytes, filler);
                    }
                }
            }
            2 | 3 => {
                // A row that ends where the block ends, or near it.
                let block_end = self.block_start() + self.memory.block_bytes;
                let end = block_end + input.below(5) - 2;
                self.row(end.saturating_sub(self.bytes.len()), input.pick(FILLERS));
            }
            4 => {
                let MemorySpec { block_bytes, max_row_bytes, .. } = *self.memory;
                let bytes = input.pick(&[max_row_bytes, block_bytes, 2 * block_bytes, max_row_bytes + block_bytes]);
                self.row(bytes + input.below(5) - 2, input.pick(FILLERS));
            }
            5 => self.bytes.extend_from_slice(input.run()),
            6 => {
                let end = input.pick(&[&b"\n"[..], b"\r\n", b"\r", b"\"", b"\"\n", b"|\"", b"x\n", b"\xEF\xBB\xBF"]);
                self.bytes.extend_from_slice(end);
            }
            _ => {
                let cut = input.below(8);
                self.bytes.truncate(self.bytes.len().saturating_sub(cut));
            }
        }
    }

    /// Start of the block that the end of the file so far falls into: a block starts with a row, and holds whole ones.
    fn block_start(&self) -> usize {
        let mut start = 0;
        for pair in self.starts.windows(2) {
            if pair[1] > start + self.memory.block_bytes {
                start = pair[0];
            }
        }
        start
    }

    /// A row of about so many bytes with its row end: exactly, if the filler has one byte and the row is no shorter empty.
    fn row(&mut self, bytes: usize, filler: &[u8]) {
        let is_text = |column: &Column| column.column_type != ColumnType::Int32;
        let (front, back, filler) = match self.layout.qualifier {
            Some(_) => ("\"", "\"", filler),
            // Thousands of short rows take long and show nothing new.
            None if filler.contains(&b'\n') => ("", "", &b"w"[..]),
            None => ("", "", filler),
        };
        let delimiters = self.layout.columns.len() - usize::from(!self.layout.trailing_delimiter);
        let numbers = self.layout.columns.len() - 1;
        let room = bytes.saturating_sub(delimiters + numbers + front.len() + back.len() + 1);
        let text =
            [front.as_bytes(), &filler.repeat(room.min(2 * MOST_BYTES) / filler.len()), back.as_bytes()].concat();
        let fields = self.layout.columns.iter().map(|column| if is_text(column) { &text } else { &b"7"[..] });
        self.starts.push(self.bytes.len());
        self.bytes.extend(fields.collect::<Vec<_>>().join(&b'|'));
        self.bytes.extend(self.layout.trailing_delimiter.then_some(b'|'));
        self.bytes.push(b'\n');
    }
}

/// What the reference makes of a slice.
fn expected(layout: &Layout, slicing: &Slicing, slice: &SliceSpec, content: &[u8], max_row_bytes: usize) -> Outcome {
    let file = &slicing.files[0];
    let head = file.head_of(slice);
    let begin_byte = slice.begin_byte + head.bytes;
    let bytes = &content[begin_byte as usize..slice.end_byte as usize];
    let mut outcome = reference::parse_up_to(layout, &file.row_end, bytes, begin_byte, max_row_bytes);
    outcome.lines += head.lines;
    outcome.skipped += head.lines;
    outcome.rejects.iter_mut().for_each(|reject| reject.line += head.lines);
    outcome
}

fn check_accounts(report: &FlowReport, slicing: &Slicing, expected: &[Outcome]) {
    assert_eq!(report.slices.len(), slicing.slices.len());
    for ((found, slice), expected) in report.slices.iter().zip(&slicing.slices).zip(expected) {
        let (out, rejected) = (expected.rows.len() as u64, expected.rejects.len() as u64);
        assert_eq!((found.number, found.bytes), (slice.number, slice.bytes()));
        assert_eq!((found.lines, found.skipped), (expected.lines, expected.skipped), "{found:?}");
        assert_eq!((found.rows, found.out, found.rejected), (out + rejected, out, rejected), "{found:?}");
    }
    let read: u64 = report.streams.iter().map(|stream| stream.stages.read.bytes).sum();
    let heads: u64 = slicing.files.iter().map(|file| file.head.bytes).sum();
    assert_eq!(read + heads, slicing.slices.iter().map(SliceSpec::bytes).sum::<u64>());
}
