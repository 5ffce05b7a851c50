//! Target `slicing`: byte order mark, row end and cuts of any file against their plain definitions.

use std::fs::File;
use std::os::unix::fs::FileExt;

use headrace_engine::slices::{Slicing, SlicingSpec, plan_slices};
use headrace_engine::spec::Margin;
use headrace_types::{Column, ColumnType, Layout, LayoutShape, MixedRowEnds, Place, RowEnd, RowEnds};

use crate::input::Input;
use crate::refused::is_refused;

/// Beyond twice the window in which the engine looks for row ends.
const MOST_BYTES: usize = 150_000;

/// Cuts one file.
///
/// # Panics
/// When a slice is not what the definition says.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.byte();
    let skip_lines = u32::from(flags >> 1 & 7).saturating_sub(4);
    let wanted = (1 + u64::from(input.word())) << (flags >> 4 & 3);
    let mut content = if flags & 1 == 1 { b"\xEF\xBB\xBF".to_vec() } else { vec![] };
    while !input.is_used_up() && content.len() < MOST_BYTES {
        let piece: &[u8] = match input.below(6) {
            0 => b"\n",
            1 => b"\r\n",
            2 => b"x",
            3 => &[b'y'; 257],
            4 => b"\r",
            _ => input.run(),
        };
        let times = [1, 1, 1, 2, 255, 256][input.below(6)];
        let room = MOST_BYTES.saturating_sub(content.len()) / piece.len().max(1);
        content.extend(piece.repeat(times.min(room)));
    }
    // Every cut reads a window: thousands of them take long and show nothing new.
    let slice_bytes = wanted.max(content.len() as u64 / 100);

    if flags >> 6 == 3 {
        return check_equal_rows(&content, slice_bytes, skip_lines, 1 + u32::from(flags >> 4 & 3) * 100);
    }
    let mut layout: Layout = serde_json::from_str(r#"{"delimiter": "|", "columns": []}"#).unwrap();
    layout.columns.push(Column::new("a", ColumnType::String, true));
    (layout.skip_lines, layout.mixed_row_ends) = (skip_lines, MixedRowEnds::Reject);
    let Some(slicing) = slices_of(&content, slice_bytes, layout) else { return };

    let (file, end) = (&slicing.files[0], content.len() as u64);
    let start = if content.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    assert_eq!((file.size_bytes, file.first_byte), (end, start));
    let mut lines = content[start as usize..].split_inclusive(|byte| *byte == b'\n');
    let head: u64 = lines.by_ref().take(skip_lines as usize).map(|line| line.len() as u64).sum();
    let first_row = lines.next().unwrap_or_default();
    assert_eq!((file.head.bytes, file.foot), (head, Margin::default()));
    let expected = match first_row {
        [.., b'\r', b'\n'] => RowEnd::OnlyCrlf,
        [.., b'\n'] => RowEnd::OnlyLf,
        _ => RowEnd::Either,
    };
    assert_eq!(file.row_end, expected);
    let cuts: Vec<u64> = slicing.slices.iter().map(|slice| slice.begin_byte).collect();
    assert_eq!(cuts, cuts_of(&content, start, start + head, slice_bytes), "slices of {slice_bytes}");
    for (index, slice) in slicing.slices.iter().enumerate() {
        assert_eq!((slice.file, slice.number as usize), (0, index + 1));
        assert_eq!(slice.end_byte, cuts.get(index + 1).copied().unwrap_or(end));
    }
}

/// The slices. None for a file that says itself that it is not in the encoding of its layout.
fn slices_of(content: &[u8], slice_bytes: u64, layout: Layout) -> Option<Slicing> {
    let files = vec![write(content)];
    match plan_slices(&SlicingSpec { files, slice_bytes, layout, ..SlicingSpec::default() }) {
        Ok(slicing) => Some(slicing),
        Err(error) => {
            assert!(is_refused(&error, content), "{error:?}");
            None
        }
    }
}

/// The same for rows without row ends: all cuts are multiples of the row.
fn check_equal_rows(content: &[u8], slice_bytes: u64, skip_lines: u32, width: u32) {
    let place = Some(Place { start: 0, width: Some(width) });
    let columns = vec![Column { place, ..Column::new("a", ColumnType::String, true) }];
    let shape = LayoutShape::FixedWidth;
    let layout = Layout { shape, row_end: RowEnds::None, skip_lines, footer_rows: 1, columns, ..Layout::default() };
    let Some(slicing) = slices_of(content, slice_bytes, layout) else { return };

    let (file, end, width) = (&slicing.files[0], content.len() as u64, u64::from(width));
    let start = if content.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let begin = end.min(start + width * u64::from(skip_lines));
    assert_eq!((file.data_begin(), file.row_end.clone()), (begin, RowEnd::Every(width as u32)));
    let last = (begin..end).step_by(width as usize).last().unwrap_or(end);
    assert_eq!((file.data_end(), file.foot.lines), (last, u64::from(last < end)));
    assert_eq!(slicing.slices.first().map_or(end, |slice| slice.begin_byte), start.min(end));
    assert_eq!(slicing.slices.last().map_or(end, |slice| slice.end_byte), end);
    let parts = (last - begin).div_ceil(slice_bytes).max(1);
    assert!(slicing.slices.len() as u64 <= parts);
    for pair in slicing.slices.windows(2) {
        let cut = pair[1].begin_byte;
        assert!(pair[0].end_byte == cut && cut > begin && cut < last && (cut - begin).is_multiple_of(width), "{cut}");
    }
    // Every part that is longer than a row begins one, but perhaps the last, which may be short.
    assert!((last - begin).div_ceil(parts) < width || slicing.slices.len() as u64 + 1 >= parts);
}

/// Where slices begin: the rows, from `begin` on, in equal parts, each from the first row that starts in it or behind it.
fn cuts_of(content: &[u8], start: u64, begin: u64, slice_bytes: u64) -> Vec<u64> {
    let end = content.len() as u64;
    if start == end {
        return vec![];
    }
    let row_starts: Vec<u64> =
        (0..end).filter(|&at| at == start || at > start && content[at as usize - 1] == b'\n').collect();
    let parts = (end - begin).div_ceil(slice_bytes).max(1);
    let part = (end - begin).div_ceil(parts);
    let mut cuts = vec![start];
    for number in 1..parts {
        let nominal = begin + number * part;
        let row = row_starts.iter().copied().find(|&row| row >= nominal && row > begin);
        cuts.extend(row.filter(|row| !cuts.contains(row)));
    }
    cuts
}

/// A file of this content; one per thread, written over and over.
fn write(content: &[u8]) -> String {
    thread_local! {
        static FILE: (File, tempfile::TempPath) = tempfile::NamedTempFile::new().unwrap().into_parts();
    }
    FILE.with(|(file, path)| {
        file.set_len(0).unwrap();
        file.write_all_at(content, 0).unwrap();
        path.to_str().unwrap().to_owned()
    })
}
