//! Keys on their way into the index: divided by their hashes while they are read, so that a part of the index that fits
//! the processor's cache can be filled at a time, by one thread.

use std::sync::{Arc, Mutex, PoisonError};

use super::BuildError;
use super::budget::Budget;
use super::team::lock;

/// Parts of the hashes, by their highest bits.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;
const PARTITION_BITS: u32 = 8;
/// Partitions that share memory. It is given back when all of them are in the index.
const GROUP_PARTITIONS: usize = 16;
/// Entries of a partition that move together, 768 bytes: by each of them a thread waits for the others once.
const UNIT_ENTRIES: usize = 64;
/// Entries of the first piece of memory of a group, and of each further one. The latter has more than 4 MB, from where
/// on the engine's allocator gives memory back to the system at once.
const FIRST_SLAB_ENTRIES: usize = 8 * UNIT_ENTRIES;
const SLAB_ENTRIES: usize = 5462 * UNIT_ENTRIES;

/// Low and high half of the key, and the row: 12 bytes.
pub type Entry = [u32; 3];

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// The key of an entry.
pub fn key(entry: &Entry) -> u64 {
    u64::from(entry[0]) | u64::from(entry[1]) << 32
}

/// The row of an entry.
pub fn row(entry: &Entry) -> u32 {
    entry[2]
}

/// What all threads have read.
pub struct Staging {
    groups: Vec<Mutex<Group>>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Group {
    slabs: Vec<Vec<Entry>>,
    /// Of each partition.
    units: [Vec<Unit>; GROUP_PARTITIONS],
}

/// Entries of a partition that stand together.
struct Unit {
    slab: u32,
    first: u32,
    entries: u32,
}

/// One thread's entries that are too few to move.
pub struct Scatter {
    entries: Vec<Entry>,
    lengths: [u8; PARTITIONS],
}

/// A partition, of which nothing more comes.
pub struct Staged {
    slabs: Arc<Slabs>,
    units: Vec<Unit>,
}

struct Slabs {
    slabs: Vec<Vec<Entry>>,
    budget: Arc<Budget>,
}

impl Staging {
    pub fn new(budget: Arc<Budget>) -> Self {
        Staging { groups: (0..PARTITIONS / GROUP_PARTITIONS).map(|_| Mutex::default()).collect(), budget }
    }

    fn append(&self, partition: usize, entries: &[Entry]) -> Result<(), BuildError> {
        self.budget.take(entries.len() as u64 * ENTRY_BYTES)?;
        let mut group = lock(&self.groups[partition / GROUP_PARTITIONS]);
        if group.slabs.last().is_none_or(|slab| slab.capacity() - slab.len() < entries.len()) {
            let capacity = if group.slabs.is_empty() { FIRST_SLAB_ENTRIES } else { SLAB_ENTRIES };
            group.slabs.push(Vec::with_capacity(capacity));
        }
        let slab = group.slabs.len() - 1;
        let first = group.slabs[slab].len();
        group.slabs[slab].extend_from_slice(entries);
        // A slab has less than 2^32 entries, and so has everything.
        let unit = Unit { slab: slab as u32, first: first as u32, entries: entries.len() as u32 };
        group.units[partition % GROUP_PARTITIONS].push(unit);
        Ok(())
    }

    /// The partitions in their order.
    pub fn into_partitions(self) -> Vec<Staged> {
        let Staging { groups, budget } = self;
        let partitions = groups.into_iter().flat_map(|group| {
            let Group { slabs, units } = group.into_inner().unwrap_or_else(PoisonError::into_inner);
            let slabs = Arc::new(Slabs { slabs, budget: budget.clone() });
            units.map(|units| Staged { slabs: slabs.clone(), units })
        });
        partitions.collect()
    }
}

impl Scatter {
    /// Memory of each.
    pub const BYTES: u64 = (PARTITIONS * UNIT_ENTRIES) as u64 * ENTRY_BYTES;

    pub fn new() -> Self {
        Scatter { entries: vec![Entry::default(); PARTITIONS * UNIT_ENTRIES], lengths: [0; PARTITIONS] }
    }

    #[inline(always)]
    pub fn push(&mut self, hash: u64, key: u64, row: u32, staging: &Staging) -> Result<(), BuildError> {
        let partition = (hash >> (u64::BITS - PARTITION_BITS)) as usize;
        let length = usize::from(self.lengths[partition]);
        self.entries[partition * UNIT_ENTRIES + length] = [key as u32, (key >> 32) as u32, row];
        self.lengths[partition] += 1;
        if length + 1 == UNIT_ENTRIES { self.move_to(staging, partition) } else { Ok(()) }
    }

    /// Moves what there is.
    pub fn end(&mut self, staging: &Staging) -> Result<(), BuildError> {
        (0..PARTITIONS).try_for_each(|partition| self.move_to(staging, partition))
    }

    #[inline(never)]
    fn move_to(&mut self, staging: &Staging, partition: usize) -> Result<(), BuildError> {
        let first = partition * UNIT_ENTRIES;
        let length = usize::from(std::mem::take(&mut self.lengths[partition]));
        match length {
            0 => Ok(()),
            _ => staging.append(partition, &self.entries[first..first + length]),
        }
    }
}

impl Staged {
    /// Entries that stand together, in no order that means something.
    pub fn entries(&self) -> impl Iterator<Item = &[Entry]> {
        let of_unit = |unit: &Unit| {
            let first = unit.first as usize;
            &self.slabs.slabs[unit.slab as usize][first..first + unit.entries as usize]
        };
        self.units.iter().map(of_unit)
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        self.budget.give_back(self.slabs.iter().map(|slab| slab.len() as u64 * ENTRY_BYTES).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_by_partition_and_their_memory_by_group() {
        let budget = Arc::new(Budget::new(u64::MAX));
        let staging = Staging::new(budget.clone());
        let hash = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let count = 100_000_u64;
        let mut scatters = [Scatter::new(), Scatter::new()];
        for number in 0..count {
            let scatter = &mut scatters[(number % 3 / 2) as usize];
            scatter.push(hash(number), u64::MAX - number, number as u32, &staging).unwrap();
        }
        scatters.iter_mut().for_each(|scatter| scatter.end(&staging).unwrap());
        assert_eq!(budget.peak(), 12 * count);
        let mut seen = vec![false; count as usize];
        for (partition, staged) in staging.into_partitions().into_iter().enumerate() {
            for entry in staged.entries().flatten() {
                let number = u64::MAX - key(entry);
                assert_eq!((number, hash(number) >> 56), (row(entry).into(), partition as u64));
                assert!(!std::mem::replace(&mut seen[number as usize], true));
            }
            let before = budget.used();
            drop(staged);
            assert_eq!(budget.used() < before, partition % GROUP_PARTITIONS == GROUP_PARTITIONS - 1);
        }
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!(budget.used(), 0);
    }
}
