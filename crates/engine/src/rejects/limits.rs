//! How many rejects are too many: counts as soon as they are passed, parts of all rows when all rows are known.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::SliceReport;
use crate::spec::{FlowSpec, KeepRejects, RejectBounds, RejectSpec, RunBounds};

/// What is counted against the limits.
pub struct Limits {
    flow: RejectBounds,
    per_file: RejectBounds,
    run: RunBounds,
    files: Vec<Counts>,
    count: AtomicU64,
}

/// Of one file.
#[derive(Default)]
struct Counts {
    slices_left: AtomicU64,
    rows: AtomicU64,
    rejected: AtomicU64,
}

/// A limit that was passed.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// Index of the file, if it is that of each file.
    pub file: Option<usize>,
    /// The sentence without its end: how many of what were rejected.
    pub what: String,
    /// The limit, as text.
    pub limit: String,
}

impl Limits {
    /// Nothing is counted so far.
    pub fn new(spec: &FlowSpec) -> Self {
        let files: Vec<Counts> = spec.source.files.iter().map(|_| Counts::default()).collect();
        for slice in &spec.source.slices {
            files[slice.file].slices_left.fetch_add(1, Ordering::Relaxed);
        }
        let &RejectSpec { limit, per_million, per_file, run, keep, .. } = &spec.rejects;
        let count = AtomicU64::new(0);
        if keep == KeepRejects::Examples {
            let none = RejectBounds::default();
            return Limits { flow: none, per_file: none, run: RunBounds::default(), files, count };
        }
        let flow = RejectBounds { limit, per_million };
        Limits { flow, per_file: per_file.unwrap_or_default(), run: run.unwrap_or_default(), files, count }
    }

    /// Rejects so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether files have limits of their own.
    pub fn are_per_file(&self) -> bool {
        self.per_file != RejectBounds::default()
    }

    /// Counts a reject; whether a count is passed now.
    pub fn add(&self, file: usize) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let in_file = self.files[file].rejected.fetch_add(1, Ordering::Relaxed) + 1;
        let passes = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count > limit);
        passes(count, self.flow.limit)
            || passes(in_file, self.per_file.limit)
            || passes(count.saturating_add(self.run.rejected_before), self.run.limit)
    }

    /// Counts the rows of a slice that ended; whether a part of all rows is passed now that a file, or all of them, are known.
    pub fn end_slice(&self, account: &SliceReport) -> bool {
        let counts = &self.files[account.file];
        counts.rows.fetch_add(account.rows, Ordering::AcqRel);
        // SeqCst: of two streams that end the last two files, one at least sees that all are known.
        counts.slices_left.fetch_sub(1, Ordering::SeqCst) == 1 && self.broken_part().is_some()
    }

    /// The first limit that is passed.
    pub fn broken(&self) -> Option<Broken> {
        self.broken_count().or_else(|| self.broken_part())
    }

    fn broken_count(&self) -> Option<Broken> {
        let count = self.count();
        if let Some(limit) = self.flow.limit.filter(|&limit| count > limit) {
            return Some(Broken { file: None, what: rows_were(count), limit: limit.to_string() });
        }
        let mut in_files = self.files.iter().map(|file| file.rejected.load(Ordering::Relaxed)).enumerate();
        if let Some(limit) = self.per_file.limit
            && let Some((file, count)) = in_files.find(|(_, count)| *count > limit)
        {
            let what = format!("{} in one file", rows_were(count));
            return Some(Broken { file: Some(file), what, limit: format!("{limit} per file") });
        }
        let count = count.saturating_add(self.run.rejected_before);
        let limit = self.run.limit.filter(|&limit| count > limit)?;
        let what = format!("{} in all data flows of the run so far", rows_were(count));
        Some(Broken { file: None, what, limit: format!("{limit} for the package") })
    }

    fn broken_part(&self) -> Option<Broken> {
        let known = |file: &Counts| file.slices_left.load(Ordering::SeqCst) == 0;
        let counts = |file: &Counts| (file.rejected.load(Ordering::Relaxed), file.rows.load(Ordering::Acquire));
        if let Some(most) = self.per_file.per_million {
            let ended = self.files.iter().enumerate().filter(|(_, file)| known(file));
            if let Some((file, counts)) =
                ended.map(|(file, own)| (file, counts(own))).find(|(_, own)| passes(*own, most))
            {
                let what = format!("{} in one file", part_was(counts));
                return Some(Broken { file: Some(file), what, limit: format!("{} per file", percent(most)) });
            }
        }
        if !self.files.iter().all(known) {
            return None;
        }
        let add = |sum: (u64, u64), own: (u64, u64)| (sum.0 + own.0, sum.1 + own.1);
        let all = self.files.iter().map(counts).fold((0, 0), add);
        if let Some(most) = self.flow.per_million.filter(|&most| passes(all, most)) {
            return Some(Broken { file: None, what: part_was(all), limit: percent(most) });
        }
        let run = add(all, (self.run.rejected_before, self.run.rows_before));
        let most = self.run.per_million.filter(|&most| passes(run, most))?;
        let what = format!("{} in all data flows of the run so far", part_was(run));
        Some(Broken { file: None, what, limit: format!("{} for the package", percent(most)) })
    }
}

/// Whether `rejected` of `rows` is more than so many of a million.
fn passes((rejected, rows): (u64, u64), per_million: u64) -> bool {
    u128::from(rejected) * 1_000_000 > u128::from(per_million) * u128::from(rows)
}

fn rows_were(count: u64) -> String {
    if count == 1 { "1 row was rejected".to_owned() } else { format!("{count} rows were rejected") }
}

fn part_was((rejected, rows): (u64, u64)) -> String {
    let part = (u128::from(rejected) * 1_000_000).div_ceil(u128::from(rows.max(1)));
    let were = if rejected == 1 { "was" } else { "were" };
    let noun = if rows == 1 { "row" } else { "rows" };
    format!("{rejected} of {rows} {noun} {were} rejected ({})", percent(part as u64))
}

/// As text, with as many of four places as say something.
fn percent(per_million: u64) -> String {
    let text = format!("{}.{:04}", per_million / 10_000, per_million % 10_000);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_judged_exactly() {
        assert!(!passes((1, 200), 5000) && passes((2, 399), 5000));
        assert!(passes((1, 3), 333_333) && !passes((1, 3), 333_334));
        assert!(!passes((0, 0), 0) && passes((1, 1 << 50), 0));
        assert!(!passes((u64::MAX, u64::MAX), 1_000_000));
    }

    #[test]
    fn percents_have_no_more_places_than_they_need() {
        let texts = [(0, "0 %"), (5000, "0.5 %"), (1, "0.0001 %"), (1_000_000, "100 %"), (123_456, "12.3456 %")];
        for (per_million, text) in texts {
            assert_eq!(percent(per_million), text);
        }
        assert_eq!(part_was((37, 10_000)), "37 of 10000 rows were rejected (0.37 %)");
        assert_eq!(part_was((1, 3)), "1 of 3 rows was rejected (33.3334 %)");
    }
}
