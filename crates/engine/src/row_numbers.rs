//! From slice-relative to file-relative lines.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::FileExt;

use headrace_types::{CoreError, ErrorKind};

use crate::report::SliceReport;
use crate::source::open_file;
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
            result.insert(slice.number, lines[slice.file]);
        }
        if last_wanted[slice.file] != Some(index) {
            lines[slice.file] += match known.get(&slice.number) {
                Some(own) => *own,
                None => count_lines(spec, slice)?,
            };
        }
    }
    Ok(result)
}

fn count_lines(spec: &FlowSpec, slice: &SliceSpec) -> Result<u64, CoreError> {
    let path = &spec.source.files[slice.file].path;
    let (file, _) = open_file(path)?;
    let mut window = vec![0; WINDOW_BYTES];
    let (mut at, mut lines) = (slice.begin_byte, 0);
    while at < slice.end_byte {
        let wanted = WINDOW_BYTES.min((slice.end_byte - at) as usize);
        match file.read_at(&mut window[..wanted], at) {
            Ok(0) => break,
            Ok(count) => {
                lines += memchr::memchr_iter(b'\n', &window[..count]).count() as u64;
                at += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(CoreError::new(ErrorKind::Source, "cannot read a source file")
                    .at_file(path)
                    .found(error.to_string()));
            }
        }
    }
    Ok(lines)
}
