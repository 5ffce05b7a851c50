//! From slice-relative to file-relative lines.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;

use headrace_types::{CoreError, ErrorKind};

use crate::report::SliceReport;
use crate::source::open_file;
use crate::spec::{FlowSpec, SliceSpec};

/// Bytes read at once when lines are counted.
const WINDOW_BYTES: usize = 1 << 20;

/// Lines of its file before slice `number`: from the accounts of the slices that ended, counted in the file for the others.
pub fn first_line(spec: &FlowSpec, ended: &[SliceReport], number: u32) -> Result<u64, CoreError> {
    let Some(own) = spec.source.slices.iter().find(|slice| slice.number == number) else { return Ok(0) };
    let lines: HashMap<u32, u64> = ended.iter().map(|slice| (slice.number, slice.lines)).collect();
    let before = spec.source.slices.iter().filter(|slice| slice.file == own.file && slice.begin_byte < own.begin_byte);
    before.map(|slice| lines.get(&slice.number).map_or_else(|| count_lines(spec, slice), |lines| Ok(*lines))).sum()
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
