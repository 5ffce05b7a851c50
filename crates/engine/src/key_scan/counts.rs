//! How many keys lie in each bucket, with a limited number of counters.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use headrace_transform::partition::Key;

/// Counters of a page: neighbours are often met together.
const PAGE_BUCKETS: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 6;
/// Pages of one [`Counts`]: 8 MB.
pub const MAX_PAGES: usize = 16 * 1024;

type Page = [u64; PAGE_BUCKETS];

/// Counts of keys by bucket; bucket `b` holds the keys `k` with `k >> shift == b`.
///
/// The shift is the least one with which the keys need no more than [`MAX_PAGES`] pages. So it depends on which keys there
/// are, not on their order, nor on how they were dealt out before [`Counts::merge`].
#[derive(Default)]
pub struct Counts {
    shift: u32,
    /// Page `p` has the buckets from `p * PAGE_BUCKETS` on.
    pages: HashMap<Key, usize, BuildHasherDefault<PageHasher>>,
    counters: Vec<Page>,
    /// The page that was asked for last, and its place.
    last: Option<(Key, usize)>,
}

impl Counts {
    /// Counts a key.
    #[inline]
    pub fn add(&mut self, key: Key) {
        self.add_to_bucket(key >> self.shift, 1);
    }

    /// Counts the keys of another one as well.
    pub fn merge(&mut self, other: &Counts) {
        self.widen(other.shift.saturating_sub(self.shift));
        for (bucket, count) in other.buckets() {
            // The shift may grow meanwhile.
            self.add_to_bucket(bucket >> (self.shift - other.shift), count);
        }
    }

    /// Keys of a bucket lie less than `1 << shift` apart.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Buckets with keys and how many, ascending.
    pub fn ascending(&self) -> Vec<(Key, u64)> {
        let mut buckets: Vec<_> = self.buckets().collect();
        buckets.sort_unstable();
        buckets
    }

    fn buckets(&self) -> impl Iterator<Item = (Key, u64)> {
        let pages = self.pages.iter().map(|(&page, &place)| (page << PAGE_BITS, &self.counters[place]));
        pages.flat_map(|(first, page)| (first..).zip(page.iter().copied()).filter(|&(_, count)| count > 0))
    }

    #[inline]
    fn add_to_bucket(&mut self, bucket: Key, count: u64) {
        let page = bucket >> PAGE_BITS;
        let slot = (bucket & (PAGE_BUCKETS as Key - 1)) as usize;
        match self.last {
            Some((last, place)) if last == page => self.counters[place][slot] += count,
            _ => self.add_to_other_page(page, slot, count),
        }
    }

    fn add_to_other_page(&mut self, page: Key, slot: usize, count: u64) {
        let place = match self.pages.get(&page) {
            Some(&place) => place,
            None if self.pages.len() < MAX_PAGES => {
                let place = self.counters.len();
                self.pages.insert(page, place);
                self.counters.push([0; PAGE_BUCKETS]);
                place
            }
            None => {
                let more = self.too_narrow(page);
                self.widen(more);
                let bucket = (page << PAGE_BITS | slot as Key) >> more;
                return self.add_to_bucket(bucket, count);
            }
        };
        self.counters[place][slot] += count;
        self.last = Some((page, place));
    }

    /// By how much the shift has to grow at least, so that one more page fits.
    fn too_narrow(&self, page: Key) -> u32 {
        let mut pages: HashSet<Key> = self.pages.keys().copied().chain([page]).collect();
        let mut more = 0;
        while pages.len() > MAX_PAGES {
            pages = pages.into_iter().map(|page| page >> 1).collect();
            more += 1;
        }
        more
    }

    fn widen(&mut self, more: u32) {
        if more == 0 {
            return;
        }
        let narrow = std::mem::take(self);
        self.shift = narrow.shift + more;
        for (bucket, count) in narrow.buckets() {
            self.add_to_bucket(bucket >> more, count);
        }
    }
}

/// Page numbers are near one another, and nobody chooses them to do harm: at worst a scan is slow.
#[derive(Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_i128((self.0 ^ u64::from(byte)).into());
        }
    }

    fn write_i128(&mut self, page: i128) {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15; // 2^64 / golden ratio
        let folded = page as u64 ^ (page >> 64) as u64;
        // The map looks at both ends of the hash.
        self.0 = folded.wrapping_mul(ODD).rotate_left(32).wrapping_mul(ODD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(keys: impl IntoIterator<Item = Key>) -> Counts {
        let mut counts = Counts::default();
        keys.into_iter().for_each(|key| counts.add(key));
        counts
    }

    #[test]
    fn few_keys_have_a_bucket_each() {
        let keys = [i128::from(i64::MIN), -1, 0, 0, 63, 64, 10_i128.pow(38) - 1, 1 - 10_i128.pow(38)];
        let counts = counted(keys);
        assert_eq!(counts.shift(), 0);
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        let expanded: Vec<Key> =
            counts.ascending().into_iter().flat_map(|(key, count)| vec![key; count as usize]).collect();
        assert_eq!(expanded, sorted);
    }

    #[test]
    fn buckets_are_the_narrowest_that_fit_whatever_the_order() {
        let limit = (MAX_PAGES * PAGE_BUCKETS) as Key;
        assert_eq!(counted(0..limit).shift(), 0);
        assert_eq!(counted(0..=limit).shift(), 1);
        // A key per page, and one too many.
        let sparse: Vec<Key> = (0..=MAX_PAGES as Key).map(|key| (key * key) << 20).collect();
        let forward = counted(sparse.iter().copied());
        assert!(forward.shift() > 0);
        let backward = counted(sparse.iter().rev().copied());
        assert_eq!((forward.shift(), forward.ascending()), (backward.shift(), backward.ascending()));
        for parts in [2, 3, 7] {
            let mut merged = Counts::default();
            for part in 0..parts {
                merged.merge(&counted(sparse.iter().copied().skip(part).step_by(parts)));
            }
            assert_eq!((forward.shift(), forward.ascending()), (merged.shift(), merged.ascending()));
        }
        let total: u64 = forward.ascending().iter().map(|(_, count)| count).sum();
        assert_eq!(total, sparse.len() as u64);
    }
}
