//! Target `flow_differential`: any layout and any file, as in `parse_differential`, through a whole flow: blocks as small as they may
//! be, slices, lines in front and rows at the end that are no data. The reference parser gets the file in one piece, so that
//! a cut in the middle of a row would show.

use std::collections::BTreeMap;

use headrace_engine::report::{FlowReport, Ignored, SliceReport, Status};
use headrace_engine::slices::Slicing;
use headrace_engine::spec::MemorySpec;
use headrace_types::{CoreError, Disposition, ErrorKind, Header, Layout};

use crate::fuzzing::parse_differential;
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
    let (margins, parts) = (input.byte(), input.pick(&[1, 1, 2, 3, 5, 17]));
    let block_bytes = 4096 + usize::from(input.word()) % 1024;
    let max_row_bytes = block_bytes + [0, 1, 300, 4096, 9000, 1 << 20, 1 << 20, 1 << 20][input.below(8)];
    let memory = MemorySpec { block_bytes, blocks: input.pick(&[1, 2, 3, 8]), max_row_bytes };
    let Some(case) = parse_differential::case(input.take(usize::MAX)) else { return };
    let (mut layout, mut content) = (case.layout, case.bytes);
    settle(&mut layout, margins);
    content.truncate(MOST_BYTES);

    Place::with(|place| {
        let slicing = match place.write(&content, &layout, content.len() as u64 / parts + 1) {
            Ok(slicing) => slicing,
            Err(error) => return assert!(may_be_refused(&error, &content, &layout), "{error:?} {layout:?}"),
        };
        let (rows, report) = place.run(&layout, &slicing, memory);
        let about = || format!("{layout:?} {:?} {}", report.slices, content.escape_ascii());
        assert_eq!((report.status, &report.error), (Status::Ok, &None), "{}", about());
        let expected = expected(&layout, &slicing, &content, max_row_bytes);
        check_accounts(&report, &slicing, &expected, &about());
        let rows = in_file_order(rows, &report.slices);
        for (row, (found, expected)) in std::iter::zip(&rows, &expected.rows).enumerate() {
            assert_eq!(found, expected, "good row {row}, {}", about());
        }
        let (rejects, bad) = located(&layout, &slicing, std::slice::from_ref(&expected));
        let found = place.rejects(&report);
        for (found, expected) in std::iter::zip(&found, &rejects) {
            assert_eq!(found, expected, "{}", about());
        }
        assert_eq!((found.len(), report.rejects.count), (rejects.len(), rejects.len() as u64), "{}", about());
        assert!(place.output(&report, "rejected.bad") == bad, "{}", about());
    });
}

/// What a flow has and the parser alone does not; and nothing that ends it early.
fn settle(layout: &mut Layout, margins: u8) {
    // They say where a row stands in its slice, among others; the reference knows the file only.
    layout.made.clear();
    for column in &mut layout.columns {
        for disposition in [&mut column.on_error, &mut column.on_truncation] {
            if *disposition == Disposition::Fail {
                *disposition = Disposition::Redirect;
            }
        }
    }
    layout.skip_lines = [0, 0, 1, 3][usize::from(margins & 3)];
    layout.header = if margins & 12 == 12 { Header::Skip } else { Header::None };
    layout.footer_rows = [0, 0, 1, 7][usize::from(margins >> 4 & 3)];
}

/// A file of another encoding, whose row ends do not go with its layout, or whose header never ends.
fn may_be_refused(error: &CoreError, content: &[u8], layout: &Layout) -> bool {
    let is = |text: &str| error.what.contains(text);
    let means_two_things = is(" begin alike") || is(" stands inside of ");
    is_refused(error, content)
        || content.starts_with(b"\xEF\xBB\xBF") && is("the byte order mark of a file")
        || layout.header == Header::Skip && is("the header of a file never ends")
        || error.kind == ErrorKind::Specification && means_two_things
}

/// What the reference makes of the file.
fn expected(layout: &Layout, slicing: &Slicing, content: &[u8], max_row_bytes: usize) -> Outcome {
    let file = &slicing.files[0];
    let data = &content[file.data_begin() as usize..file.data_end() as usize];
    let mut outcome = reference::parse_up_to(layout, &file.row_end, data, file.data_begin(), max_row_bytes);
    outcome.rejects.iter_mut().for_each(|reject| reject.line += file.head.lines);
    let margins = file.head.lines + file.foot.lines;
    (outcome.lines, outcome.skipped) = (outcome.lines + margins, outcome.skipped + margins);
    outcome
}

fn check_accounts(report: &FlowReport, slicing: &Slicing, expected: &Outcome, about: &str) {
    assert_eq!(report.slices.len(), slicing.slices.len());
    let sum = |count: fn(&SliceReport) -> u64| report.slices.iter().map(count).sum::<u64>();
    let (out, rejected) = (expected.rows.len() as u64, expected.rejects.len() as u64);
    let found = [sum(|slice| slice.rows), sum(|slice| slice.out), sum(|slice| slice.rejected)];
    assert_eq!(found, [out + rejected, out, rejected], "{about}");
    // An empty file has no slice.
    if !report.slices.is_empty() {
        let found = (sum(|slice| slice.lines), sum(|slice| slice.skipped));
        assert_eq!(found, (expected.lines, expected.skipped), "{about}");
    }
    let mut ignored: BTreeMap<usize, Ignored> = BTreeMap::new();
    for (column, found) in report.slices.iter().flat_map(|slice| &slice.ignored) {
        let counts = ignored.entry(*column).or_default();
        (counts.nulls, counts.cut) = (counts.nulls + found.nulls, counts.cut + found.cut);
    }
    let expected = expected.ignored.iter().map(|(column, &(nulls, cut))| (*column, Ignored { nulls, cut }));
    assert_eq!(ignored, expected.collect(), "{about}");
}

/// One stream takes the largest slice first, and of equal ones the first.
fn in_file_order(rows: Vec<Vec<Value>>, slices: &[SliceReport]) -> Vec<Vec<Value>> {
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(slices[index].bytes));
    let mut rows = rows.into_iter();
    let mut parts: Vec<(usize, Vec<Vec<Value>>)> =
        order.into_iter().map(|index| (index, rows.by_ref().take(slices[index].out as usize).collect())).collect();
    assert_eq!(rows.next(), None);
    parts.sort_by_key(|(index, _)| *index);
    parts.into_iter().flat_map(|(_, rows)| rows).collect()
}
