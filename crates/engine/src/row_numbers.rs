//! From slice-relative to file-relative lines.

use std::collections::{HashMap, HashSet};

use headrace_types::CoreError;

use crate::report::SliceReport;
use crate::source::read_again;
use crate::spec::{FlowSpec, SliceSpec};

/// Bytes read at once when lines are counted.
const WINDOW_BYTES: usize = 1 << 20;

/// Lines of their files before each of the slices `wanted`: from the accounts of the slices that ended, counted in the file
/// for the others. Every slice is counted at most once, and only where a wanted one follows in its file.
pub fn first_lines(spec: &FlowSpec, ended: &[SliceReport], wanted: &[u32]) -> Result<HashMap<u32, u64>, CoreError> {
    let known: HashMap<u32, u64> = ended.iter().map(|slice| (slice.number, slice.lines)).collect();
    let wanted: HashSet<u32> = wanted.iter().copied().collect();
    let mut result = HashMap::new();
    // Slices are numbered in file order: the last wanted one of each file ends its pass.
    let mut last_wanted = vec![None; spec.source.files.len()];
    for (index, slice) in spec.source.slices.iter().enumerate().filter(|(_, slice)| wanted.contains(&slice.number)) {
        last_wanted[slice.file] = Some(index);
    }
    let mut lines = vec![0; spec.source.files.len()];
    for (index, slice) in spec.source.slices.iter().enumerate() {
        if last_wanted[slice.file].is_none_or(|last| index > last) {
            continue;
        }
        if wanted.contains(&slice.number) {
            result.insert(slice.number, slice.first_row.unwrap_or(lines[slice.file]));
        }
        if last_wanted[slice.file] != Some(index) {
            lines[slice.file] += match known.get(&slice.number) {
                Some(own) => *own,
                None => count_lines(spec, slice, &|_| true)?,
            };
        }
    }
    Ok(result)
}

/// Lines of a slice, its head included. `goes_on` is told of bytes of the file that were read, and says whether to go on: fewer
/// lines if not.
///
/// # Errors
/// Those of reading the source.
pub fn count_lines(spec: &FlowSpec, slice: &SliceSpec, goes_on: &dyn Fn(u64) -> bool) -> Result<u64, CoreError> {
    let (file, layout) = (&spec.source.files[slice.file], spec.layout_of(slice.file));
    let (text, head) = (slice.text(), file.head_of(slice));
    let mut source = read_again(&spec.source, layout, slice, text.begin + head.bytes, text.end)?;
    let mut scanner = file.scanner(layout)?;
    let mut window = vec![0; WINDOW_BYTES];
    let mut lines = head.lines;
    let mut taken_bytes = 0;
    loop {
        let count = source.read(&mut window)?;
        let more_bytes = source.taken_bytes() - taken_bytes;
        taken_bytes += more_bytes;
        if !goes_on(more_bytes) || count == 0 {
            return Ok(lines);
        }
        let mut rest = &window[..count];
        while let Some(end) = scanner.next_row_end(rest) {
            lines += 1;
            rest = &rest[end + 1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{FileSpec, MemorySpec, SourceSpec};
    use headrace_types::{Column, ColumnType, Layout};

    #[test]
    fn line_feeds_inside_qualifiers_are_not_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        // A field longer than two windows, with a line feed on both sides of each boundary.
        let long = "\n".repeat(2 * WINDOW_BYTES + 1);
        let first = format!("\"a\nb\"\"\n\"|c\nd\"\n\"{long}\"\n");
        std::fs::write(&path, format!("{first}e\nf\n")).unwrap();
        let count = |qualifier| {
            let columns = vec![Column::new("a", ColumnType::String, true)];
            let end = first.len() as u64;
            let slice = |number, begin_byte, end_byte| SliceSpec {
                number,
                file: 0,
                begin_byte,
                end_byte,
                ..SliceSpec::default()
            };
            let metadata = std::fs::metadata(&path).unwrap();
            let file = FileSpec {
                path: path.to_str().unwrap().to_owned(),
                size_bytes: end + 4,
                modified_ns: crate::source::modified_ns(&metadata),
                inode: std::os::unix::fs::MetadataExt::ino(&metadata),
                ..FileSpec::default()
            };
            let slices = [slice(1, 0, end), slice(2, end, end + 2), slice(3, end + 2, end + 4)];
            let layout = Layout { delimiter: "|".to_owned(), qualifier, columns, ..Layout::default() };
            let memory = MemorySpec { block_bytes: 4096, blocks: 1, max_row_bytes: 4096 };
            let spec = FlowSpec::plain("test", layout, SourceSpec::of_files(&[file], &slices), 1, memory);
            let lines = first_lines(&spec, &[], &[2, 3]).unwrap();
            (lines[&2], lines[&3])
        };
        assert_eq!(count(Some('"')), (3, 4));
        let all = 5 + long.len() as u64;
        assert_eq!(count(None), (all, all + 1));
    }
}
