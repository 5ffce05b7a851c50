//! Accounts of what was read, in a file of the run folder: the ledger has what came out of a slice, or of a pair, but not what each
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

/// What goes together, read to its end: a slice, or a pair.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptUnit {
    /// Whose rows it tells of, as [`names`] has them.
    of: Vec<String>,
    /// The accounts of its slices.
    pub slices: Vec<SliceReport>,
    /// The keys of a pair; none without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<JoinedRange>,
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
        let of = names(spec);
        let folder = Folder::new(&spec.rejects);
        let path = folder.path(ENDING);
        let lines = folder.open(&path).map(BufReader::new).map(|file| file.lines()).into_iter().flatten();
        let units = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<KeptUnit>(&line).ok());
        let first = |unit: KeptUnit| Some((unit.slices.first()?.number, unit));
        let mut known: HashMap<u32, KeptUnit> = units.filter_map(first).collect();
        known.retain(|slice, unit| unit.of == of && spec.is_slice_committed(*slice));
        // What cannot be written is read again then.
        let own = KeptAccounts { of, known, file: folder.create(&path).ok().map(Mutex::new) };
        own.known.values().for_each(|unit| own.write(unit));
        own
    }

    /// Writes a line, if there is more to know of rows than the ledger has. That it cannot be written fails no load.
    pub fn keep(&self, slices: &[SliceReport], keys: Option<JoinedRange>) {
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
            let committed: Option<Vec<_>> = unit.iter().map(known).collect();
            let kept: Vec<_> = found.slices.iter().map(|account| counts(&account.of_destination(own))).collect();
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
