//! From staged keys to a table, on all threads of a team.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::BuildError;
use super::budget::Budget;
use super::direct::DirectTable;
use super::keys::TILE_ROWS;
use super::lines::{Arrival, Inserted, Line, LineTable, insert};
use super::origins::{Conflicts, Origins};
use super::staging::{self, Entry, PARTITIONS, Staged};
use super::table::{Table, stored_row};
use super::team::{Team, lock, share_out};

/// What filling needs and learns.
pub struct Filling<'a> {
    pub team: &'a Team<'a>,
    pub budget: &'a Budget,
    pub origins: &'a Origins,
    /// Rows with one key.
    pub conflicts: Conflicts<'a>,
    /// Different keys so far.
    pub keys: AtomicU64,
}

impl<'a> Filling<'a> {
    pub fn new(team: &'a Team<'a>, budget: &'a Budget, origins: &'a Origins, conflicts: Conflicts<'a>) -> Self {
        Filling { team, budget, origins, conflicts, keys: AtomicU64::new(0) }
    }

    /// A table of all numbers from the least one on.
    pub fn direct(&self, staged: Vec<Staged>, least: i64, numbers: u64) -> Result<DirectTable, BuildError> {
        self.budget.take(DirectTable::bytes_for(numbers))?;
        let table = DirectTable::new(least, numbers);
        let Filling { origins, conflicts, keys, .. } = self;
        let settle = |one, other| conflicts.settle(one, other);
        share_out(self.team, staged, |staged| {
            let mut new = 0;
            for entry in staged.entries().flatten() {
                let row = origins.row(staging::row(entry));
                new += u64::from(table.insert(staging::key(entry) as i64, row, &settle));
            }
            keys.fetch_add(new, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(table)
    }

    /// Lines for all rows, each partition with as many.
    fn partition_lines<L: Line>(&self) -> usize {
        LineTable::<L>::lines_for(self.origins.rows().into(), PARTITIONS)
    }

    /// Memory of lines for all rows.
    pub fn bytes_of_lines<L: Line>(&self) -> u64 {
        LineTable::<L>::bytes_for(self.partition_lines::<L>() * PARTITIONS)
    }

    /// Lines. `arrive` tells of a staged key and the last number of its row what goes into them; `is_same` compares the
    /// keys of rows whose short keys are equal.
    pub fn lines<L: Line>(
        &self,
        staged: Vec<Staged>,
        arrive: impl Fn(u64, u32) -> Arrival<L::Key> + Sync,
        is_same: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<LineTable<L>, BuildError> {
        let Filling { team, budget, origins, conflicts, keys } = self;
        let partition_lines = self.partition_lines::<L>();
        let count = partition_lines * PARTITIONS;
        // Each partition is in memory twice only for a moment.
        budget.foresee(self.bytes_of_lines::<L>(), u64::from(origins.rows()) * size_of::<Entry>() as u64)?;
        let mut table = LineTable::<L>::new(count);
        let beyond = Mutex::new(Vec::new());
        let settle = |one, other| conflicts.settle(one, other);
        let parts = staged.into_iter().zip(table.lines_mut().chunks_exact_mut(partition_lines)).enumerate();
        share_out(*team, parts, |(partition, (staged, lines))| {
            budget.take(LineTable::<L>::bytes_for(partition_lines))?;
            let (mut new, first) = (0, partition * partition_lines);
            let mut arrivals = Vec::with_capacity(TILE_ROWS);
            for tile in staged.entries().flat_map(|entries| entries.chunks(TILE_ROWS)) {
                // In a loop of its own, because keys that are not staged come from far, many at the same time.
                arrivals.extend(tile.iter().map(|entry| arrive(staging::key(entry), origins.row(staging::row(entry)))));
                for arrival in arrivals.drain(..) {
                    let own = LineTable::<L>::place(arrival.hash, count) - first;
                    match insert(&mut lines[own..], arrival, &is_same, &settle)? {
                        Inserted::New => new += 1,
                        Inserted::Known => {}
                        Inserted::Beyond => lock(&beyond).push(arrival),
                    }
                }
            }
            keys.fetch_add(new, Ordering::Relaxed);
            Ok(())
        })?;
        // Few: those of which the last lines of a partition are full.
        for arrival in beyond.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let inserted = table.insert_beyond(arrival, &is_same, &settle)?;
            keys.fetch_add(u64::from(inserted == Inserted::New), Ordering::Relaxed);
        }
        Ok(table)
    }
}

/// Puts other payloads into the place of rows.
pub fn replace(table: &mut Table, team: &Team<'_>, payload: impl Fn(u32) -> u32 + Sync) -> Result<(), BuildError> {
    match table {
        Table::Direct(table) => share_out(team, table.parts(PART_SLOTS), |slots| {
            for slot in slots {
                let found = slot.load(Ordering::Relaxed);
                if found != 0 {
                    slot.store(payload(stored_row(found)) + 1, Ordering::Relaxed);
                }
            }
            Ok(())
        }),
        Table::Narrow(table) => replace_in_lines(&mut table.lines, team, payload),
        Table::Wide(table) => replace_in_lines(&mut table.lines, team, payload),
        Table::Short(table) => replace_in_lines(&mut table.lines, team, payload),
        Table::Hashed(table) => replace_in_lines(&mut table.lines, team, payload),
    }
}

/// Slots that a thread takes at a time.
const PART_SLOTS: usize = 1 << 16;

fn replace_in_lines<L: Line>(
    table: &mut LineTable<L>,
    team: &Team<'_>,
    payload: impl Fn(u32) -> u32 + Sync,
) -> Result<(), BuildError> {
    share_out(team, table.lines_mut().chunks_mut(PART_SLOTS / L::SLOTS), |lines| {
        for line in lines {
            let used = (0..L::SLOTS).take_while(|slot| line.found(*slot) != 0).count();
            (0..used).for_each(|slot| line.put(slot, line.key(slot), payload(stored_row(line.found(slot))) + 1));
        }
        Ok(())
    })
}
