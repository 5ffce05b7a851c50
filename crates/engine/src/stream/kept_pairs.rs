//! What is known of pairs that were joined, in a file of the run folder: the ledger has what came out of a pair, not how many rows met
//! in it, nor its keys. A pair whose line is lost is read again.
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

const ENDING: &str = "pairs";

/// A pair that was joined to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPair {
    /// The accounts of its slices.
    pub slices: Vec<SliceReport>,
    /// Its keys; none without any.
    pub keys: Option<JoinedRange>,
}

/// Those of a flow.
#[derive(Default)]
pub struct KeptPairs {
    /// Of an earlier attempt, by the number of the first slice.
    known: HashMap<u32, KeptPair>,
    file: Option<Mutex<File>>,
}

impl KeptPairs {
    /// Reads what an earlier attempt has kept, and begins a file of this one's own: an earlier process may not be as dead as it seems.
    pub fn open(spec: &FlowSpec) -> Self {
        if spec.join.is_none() || !spec.sinks().any(|sink| matches!(sink, SinkSpec::Postgres(_))) {
            return Self::default(); // all pairs are committed together
        }
        let folder = Folder::new(&spec.rejects);
        let path = folder.path(ENDING);
        let lines = folder.open(&path).map(BufReader::new).map(|file| file.lines()).into_iter().flatten();
        let pairs = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<KeptPair>(&line).ok());
        let first = |pair: KeptPair| Some((pair.slices.first()?.number, pair));
        let mut known: HashMap<u32, KeptPair> = pairs.filter_map(first).collect();
        known.retain(|slice, _| spec.is_slice_committed(*slice));
        // What cannot be written is read again then.
        let own = KeptPairs { known, file: folder.create(&path).ok().map(Mutex::new) };
        own.known.values().for_each(|pair| own.keep(pair));
        own
    }

    /// Writes a line. That it cannot be written fails no load.
    pub fn keep(&self, pair: &KeptPair) {
        let Some(file) = &self.file else { return };
        if let Ok(mut line) = serde_json::to_string(pair) {
            line.push('\n');
            let _ = lock(file).write_all(line.as_bytes());
        }
    }

    /// What was kept of a pair, if it says the same as the ledger of every destination.
    pub fn of(&self, spec: &FlowSpec, pair: &[SliceSpec]) -> Option<KeptPair> {
        let found = self.known.get(&pair.first()?.number)?;
        let counts = |account: &SliceReport| {
            let &SliceReport { number, out, rejected, filtered, skipped, values_ignored, text_hash, .. } = account;
            (number, out, rejected, filtered, skipped, values_ignored, text_hash)
        };
        for own in 0..spec.destinations() {
            let known = |slice: &SliceSpec| {
                spec.committed_in(own)?.get(&slice.number).map(|known| counts(&SliceReport::known(slice, known)))
            };
            let committed: Option<Vec<_>> = pair.iter().map(known).collect();
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
        Some(KeptPair { slices: slices.collect(), keys: found.keys.clone() })
    }
}
