//! How many different texts there are: the least hashes tell it, exactly while there are few.

use super::hash::hash;

/// Hashes that are kept.
pub const MOST_HASHES: usize = 1024;
/// Places of the smallest table.
const FEWEST_PLACES: usize = 64;

/// The least hashes of texts.
#[derive(Debug, Clone)]
pub struct Distinct {
    most: usize,
    /// A table of hashes, each at the place that its low bits say or behind; 0 where there is none. At most half full, and of at
    /// most four times as many places as hashes shall be kept.
    places: Vec<u64>,
    /// Hashes in it.
    count: usize,
    /// Hashes that are to be taken, half as many as shall be kept: many at once, because the tables of many columns are not all in
    /// the nearest cache.
    waiting: Vec<u64>,
    /// Hashes from this one on are not kept; none were dropped while it is none.
    bound: Option<u64>,
}

impl Distinct {
    /// Keeps so many hashes; with 0 of them nothing is told.
    pub fn new(most: usize) -> Self {
        Distinct { most, places: Vec::new(), count: 0, waiting: Vec::new(), bound: None }
    }

    /// Whether anything is told.
    pub fn is_told(&self) -> bool {
        self.most > 0
    }

    /// Hashes above this one count for nothing.
    #[inline(always)]
    pub fn greatest(&self) -> u64 {
        self.bound.map_or(u64::MAX, |bound| bound.saturating_sub(1))
    }

    /// Takes a text.
    #[inline]
    pub fn add(&mut self, text: &[u8]) {
        self.add_hash(hash(text));
    }

    /// Takes the [`hash`] of a text.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.most == 0 || hash > self.greatest() || self.holds(hash) {
            return;
        }
        self.insert(hash);
    }

    /// Takes hashes, now or later.
    #[inline]
    pub fn add_later(&mut self, hashes: &[u64]) {
        self.waiting.extend_from_slice(hashes);
        if self.waiting.len() >= self.most / 2 {
            self.take_waiting();
        }
    }

    #[inline(never)]
    fn take_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..).for_each(|hash| self.add_hash(hash));
        self.waiting = waiting;
    }

    /// The place of the hash, or that where it would stand; none in a table without places.
    #[inline(always)]
    fn place(&self, hash: u64) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        while self.places[place] != 0 && self.places[place] != hash {
            place = (place + 1) & mask;
        }
        Some(place)
    }

    #[inline(always)]
    fn holds(&self, hash: u64) -> bool {
        self.place(hash).is_some_and(|place| self.places[place] == hash)
    }

    #[cold]
    fn insert(&mut self, hash: u64) {
        if self.count == 2 * self.most {
            self.drop_greatest();
            if hash > self.greatest() {
                return;
            }
        }
        if 2 * (self.count + 1) > self.places.len() {
            let places = (2 * self.places.len()).max(FEWEST_PLACES);
            let hashes = self.drained(places);
            hashes.into_iter().for_each(|hash| self.put(hash));
        }
        self.put(hash);
    }

    /// Puts a hash that is not there where there is room.
    fn put(&mut self, hash: u64) {
        if let Some(place) = self.place(hash) {
            self.places[place] = hash;
            self.count += 1;
        }
    }

    /// All hashes; the table is empty then, and has so many places.
    fn drained(&mut self, places: usize) -> Vec<u64> {
        let mut hashes = std::mem::replace(&mut self.places, vec![0; places]);
        hashes.retain(|hash| *hash != 0);
        self.count = 0;
        hashes
    }

    fn drop_greatest(&mut self) {
        if self.count > self.most {
            let mut all = self.drained(self.places.len());
            let (least, bound, _) = all.select_nth_unstable(self.most);
            self.bound = Some(*bound);
            least.iter().for_each(|hash| self.put(*hash));
        }
    }

    /// Takes those of another.
    pub fn merge(&mut self, other: &Distinct) {
        self.bound = self.bound.into_iter().chain(other.bound).min();
        let own = self.drained(self.places.len());
        let waiting = std::mem::take(&mut self.waiting);
        own.iter()
            .chain(&waiting)
            .chain(&other.places)
            .chain(&other.waiting)
            .filter(|hash| **hash != 0)
            .for_each(|hash| self.add_hash(*hash));
    }

    /// How many different texts there are among so many, and whether that is exact; nothing if it was not counted.
    pub fn count(&self, values: u64) -> Option<(u64, bool)> {
        if self.most == 0 {
            return None;
        }
        let mut own = self.clone();
        own.take_waiting();
        own.drop_greatest();
        let Some(bound) = own.bound else { return Some((own.count as u64, true)) };
        // The hashes below the bound are so many of all as the bound is of all numbers.
        let part = bound as f64 / 2_f64.powi(64);
        Some((((own.count as f64 / part) as u64).min(values), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact_and_many_are_near() {
        for count in [0_u64, 1, 1000, 1024, 1025, 5000, 200_000] {
            let mut halves = [Distinct::new(MOST_HASHES), Distinct::new(MOST_HASHES)];
            let mut whole = Distinct::new(MOST_HASHES);
            for number in 0..count {
                let text = format!("value {number}");
                whole.add(text.as_bytes());
                whole.add(text.as_bytes());
                // Some are in both.
                halves[(number % 2) as usize].add(text.as_bytes());
                halves[(number % 3 / 2) as usize].add(text.as_bytes());
            }
            let [mut one, other] = halves;
            one.merge(&other);
            let found = whole.count(u64::MAX).unwrap();
            assert_eq!(one.count(u64::MAX), Some(found));
            assert_eq!(found.1, count <= MOST_HASHES as u64);
            let error = found.0.abs_diff(count) as f64 / count.max(1) as f64;
            assert!(error < if found.1 { f64::MIN_POSITIVE } else { 0.1 }, "{count}: {found:?}");
            assert!(whole.places.len() <= 4 * MOST_HASHES);
        }
        assert_eq!(Distinct::new(0).count(5), None);
    }
}
