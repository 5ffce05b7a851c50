//! Accounts of what was read, in a file of the run folder: the ledger has what came out of a slice, or of a unit of joined ones, but not what each
//! transform has done with its rows, nor how many met in a join, nor their keys. What has no line here is read again.
//!
//! A line is written before the transaction of its rows can be committed. That it was not says the ledger.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::ranges::JoinedRange;
use crate::outcome::lock;
use crate::rejects::Folder;
use crate::report::{DestinationCounts, SliceReport};
use crate::spec::{FlowSpec, SinkSpec, SliceSpec};

const ENDING: &str = "accounts";

/// What goes together, read to its end: a slice, or those whose rows meet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptUnit {
    /// Whose rows it tells of, as [`names`] has them.
    of: Vec<String>,
    /// The accounts of its slices.
    pub slices: Vec<SliceReport>,
    /// Its keys in each join that had some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<JoinedRange>,
}

/// Those of a flow.
#[derive(Default)]
pub struct KeptAccounts {
    /// Whose rows the flow counts.
    of: Vec<String>,
    /// Of an earlier attempt, by the number of the first slice.
    known: HashMap<u32, KeptUnit>,
    file: Option<Mutex<File>>,
}

impl KeptAccounts {
    /// Reads what an earlier attempt has kept, and begins a file of this one's own: an earlier process may not be as dead as it seems.
    pub fn open(spec: &FlowSpec) -> Self {
        if !spec.keeps_accounts() {
            return Self::default();
        }
        Self::of_folder(&Folder::new(&spec.rejects), names(spec), |slice| spec.is_slice_committed(slice))
    }

    fn of_folder(folder: &Folder, of: Vec<String>, is_committed: impl Fn(u32) -> bool) -> Self {
        let path = folder.path(ENDING);
        let lines = folder.open(&path).map(BufReader::new).map(|file| file.lines()).into_iter().flatten();
        let units = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<KeptUnit>(&line).ok());
        let first = |unit: KeptUnit| Some((unit.slices.first()?.number, unit));
        let mut known: HashMap<u32, KeptUnit> = units.filter_map(first).collect();
        known.retain(|_, unit| unit.of == of && unit.slices.iter().all(|own| is_committed(own.number)));
        // What cannot be written is read again then.
        let own = KeptAccounts { of, known, file: folder.create(&path).ok().map(Mutex::new) };
        own.known.values().for_each(|unit| own.write(unit));
        own
    }

    /// Writes a line, if there is more to know of rows than the ledger has. That it cannot be written fails no load.
    pub fn keep(&self, slices: &[SliceReport], keys: Vec<JoinedRange>) {
        if self.file.is_some() {
            self.write(&KeptUnit { of: self.of.clone(), slices: slices.to_vec(), keys });
        }
    }

    fn write(&self, unit: &KeptUnit) {
        let Some(file) = &self.file else { return };
        if let Ok(mut line) = serde_json::to_string(unit) {
            line.push('\n');
            let _ = lock(file).write_all(line.as_bytes());
        }
    }

    /// What was kept of a unit, if it says the same as the ledger of every destination.
    pub fn of(&self, spec: &FlowSpec, unit: &[SliceSpec]) -> Option<KeptUnit> {
        let found = self.known.get(&unit.first()?.number)?;
        let counts = |account: &SliceReport| {
            let &SliceReport { number, out, rejected, filtered, skipped, values_ignored, text_hash, .. } = account;
            (number, out, rejected, filtered, skipped, values_ignored, text_hash)
        };
        for own in 0..spec.destinations() {
            let known = |slice: &SliceSpec| {
                spec.committed_in(own)?.get(&slice.number).map(|known| counts(&SliceReport::known(slice, known)))
            };
            let committed: Option<Vec<_>> =
                unit.iter().filter(|slice| spec.takes(own, slice.number)).map(known).collect();
            let taken = found.slices.iter().filter(|account| spec.takes(own, account.number));
            let kept: Vec<_> = taken.map(|account| counts(&account.of_destination(own))).collect();
            if committed? != kept {
                return None;
            }
        }
        let committed = |own: &DestinationCounts| DestinationCounts { committed: true, ..*own };
        // Nothing was read now.
        let slices = found.slices.iter().map(|account| SliceReport {
            stream: None,
            committed: true,
            bytes: 0,
            lf_lines: 0,
            crlf_lines: 0,
            is_utf8: None,
            replaced: Default::default(),
            stray_qualifiers: Default::default(),
            filled_rows: 0,
            extended_rows: 0,
            destinations: account.destinations.iter().map(committed).collect(),
            ..account.clone()
        });
        Some(KeptUnit { slices: slices.collect(), ..found.clone() })
    }
}

impl FlowSpec {
    /// Whether slices may be committed one by one, and their ledger does not have all that there is to tell of them.
    pub fn keeps_accounts(&self) -> bool {
        let commits_slices = self.sinks().any(|sink| matches!(sink, SinkSpec::Postgres(_)));
        commits_slices && (self.join.is_some() || !self.transforms.is_empty())
    }
}

/// The destinations and transforms of a flow: behind the commit in one place, the flow into another one has fewer of them.
fn names(spec: &FlowSpec) -> Vec<String> {
    let destinations = std::iter::once(&spec.destination).chain(spec.others.iter().map(|other| &other.name));
    destinations.chain(spec.transforms.iter().map(|own| &own.name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::{JoinCounts, TransformCounts};
    use crate::spec::RejectSpec;

    /// A flow of two slices that are committed, into two destinations.
    fn spec() -> FlowSpec {
        let slice =
            |number: u32| json!({"number": number, "file": 0, "begin_byte": 0, "end_byte": 9, "first_row": null});
        let known = json!({"1": {"loaded": 2, "rejected": 1, "filtered": 3, "skipped": 1}, "2": {"loaded": 6, "rejected": 0, "skipped": 0}});
        let spec = json!({
            "name": "load",
            "layout": {"delimiter": "|", "columns": [{"name": "id", "type": {"kind": "int64"}, "nullable": false}]},
            "source": {"files": [], "slices": [slice(1), slice(2)], "committed": known},
            "destination": "one",
            "others": [{"name": "two", "input": {"transform": null}, "sink": {"kind": "null"}, "committed": known}],
            "sink": {"kind": "null"},
            "streams": 1,
            "memory": {"block_bytes": 4096, "blocks": 2, "max_row_bytes": 4096},
            "rejects": {"limit": 0},
        });
        serde_json::from_value(spec).unwrap()
    }

    /// What was counted in slice 1.
    fn account(spec: &FlowSpec) -> SliceReport {
        let of_one = DestinationCounts { out: 2, rejected: 1, filtered: 3, ..DestinationCounts::default() };
        SliceReport {
            stream: Some(4),
            bytes: 9,
            lines: 7,
            skipped: 1,
            rows: 6,
            rejected: 1,
            out: 4,
            destinations: vec![of_one, of_one],
            inner: vec![JoinCounts { rows: 5, unmatched: 2, rejected: 1, ..JoinCounts::default() }],
            transforms: vec![TransformCounts { rows: 6, matched: 3, filtered: 3, ..TransformCounts::default() }],
            ..SliceReport::new(&spec.source.slices[0])
        }
    }

    fn kept(folder: &Folder, of: &[&str], committed: &[u32]) -> KeptAccounts {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        KeptAccounts::of_folder(folder, of, |slice| committed.contains(&slice))
    }

    #[test]
    fn lines_are_found_by_every_attempt_that_follows_for_slices_that_are_committed() {
        let place = tempfile::TempDir::new().unwrap();
        let folder = place.path().to_str().unwrap().to_owned();
        let folder = Folder::new(&RejectSpec { folder, file_stem: "orders".to_owned(), ..RejectSpec::default() });
        let (own, spec) = (["orders", "keyed"], spec());
        let first = kept(&folder, &own, &[1, 2]);
        assert!(first.known.is_empty());
        let second = SliceReport::new(&spec.source.slices[1]);
        first.keep(&[account(&spec)], Vec::new());
        first.keep(&[second], Vec::new());
        // A line that was cut off when its process died.
        std::fs::OpenOptions::new().append(true).open(folder.path(ENDING)).unwrap().write_all(b"{\"of\"").unwrap();
        // Nobody has said that slice 2 is committed: whoever loads it says anew what was counted.
        let numbers = |kept: &KeptAccounts| kept.known.keys().copied().collect::<Vec<_>>();
        assert_eq!(numbers(&kept(&folder, &own, &[1])), [1]);
        assert_eq!(numbers(&kept(&folder, &own, &[1, 2])), [1]);
        // The flow into what is left of several destinations counts other rows.
        assert!(kept(&folder, &["orders"], &[1]).known.is_empty());
        assert!(kept(&folder, &own, &[1]).known.is_empty(), "that one has begun a file of its own");
    }

    #[test]
    fn an_account_that_fits_the_ledgers_is_that_of_a_slice_of_which_nothing_was_read_now() {
        let spec = spec();
        let of = |slices: Vec<SliceReport>| {
            let unit = KeptUnit { of: Vec::new(), slices, keys: Vec::new() };
            let accounts = KeptAccounts { known: HashMap::from([(1, unit)]), ..KeptAccounts::default() };
            accounts.of(&spec, &spec.source.slices[..1]).map(|unit| unit.slices[0].clone())
        };
        let (own, found) = (account(&spec), of(vec![account(&spec)]).unwrap());
        assert_eq!((found.stream, found.committed, found.bytes), (None, true, 0));
        assert_eq!((found.rows, found.out, &found.transforms), (6, 4, &own.transforms));
        assert_eq!(found.inner, own.inner);
        assert!(found.destinations.iter().all(|own| own.committed));
        let changes: [fn(&mut SliceReport); 4] = [
            |account: &mut SliceReport| account.skipped += 1,
            |account| account.values_ignored += 1,
            |account| account.destinations[0].filtered += 1,
            |account| account.destinations[1].out += 1,
        ];
        for change in changes {
            let mut other = own.clone();
            change(&mut other);
            assert!(of(vec![other]).is_none());
        }
        let nothing = KeptAccounts::default();
        assert!(nothing.of(&spec, &spec.source.slices[1..]).is_none());
    }
}
