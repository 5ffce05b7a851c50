//! How many different texts there are: the least hashes tell it, exactly while there are few.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes that are kept.
pub const MOST_HASHES: usize = 1024;

/// The least hashes of texts.
#[derive(Debug, Clone)]
pub struct Distinct {
    most: usize,
    /// Twice as many as shall be kept, at most.
    hashes: HashSet<u64, BuildHasherDefault<Itself>>,
    /// Hashes from this one on are not kept; none were dropped while it is none.
    bound: Option<u64>,
}

/// A hash is its own.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Distinct {
    /// Keeps so many hashes; with 0 of them nothing is told.
    pub fn new(most: usize) -> Self {
        Distinct { most, hashes: HashSet::default(), bound: None }
    }

    /// Takes a text.
    #[inline]
    pub fn add(&mut self, text: &[u8]) {
        if self.most > 0 {
            self.add_hash(hash(text));
        }
    }

    fn add_hash(&mut self, hash: u64) {
        if self.bound.is_none_or(|bound| hash < bound) && self.hashes.insert(hash) && self.hashes.len() > 2 * self.most
        {
            self.drop_greatest();
        }
    }

    fn drop_greatest(&mut self) {
        if self.hashes.len() > self.most {
            let mut all: Vec<u64> = self.hashes.drain().collect();
            let (least, bound, _) = all.select_nth_unstable(self.most);
            self.bound = Some(*bound);
            self.hashes.extend(least.iter());
        }
    }

    /// Takes those of another.
    pub fn merge(&mut self, other: &Distinct) {
        self.bound = self.bound.into_iter().chain(other.bound).min();
        if let Some(bound) = self.bound {
            self.hashes.retain(|hash| *hash < bound);
        }
        other.hashes.iter().for_each(|hash| self.add_hash(*hash));
    }

    /// How many different texts there are among so many, and whether that is exact; nothing if it was not counted.
    pub fn count(&self, values: u64) -> Option<(u64, bool)> {
        if self.most == 0 {
            return None;
        }
        let mut own = self.clone();
        own.drop_greatest();
        let Some(bound) = own.bound else { return Some((own.hashes.len() as u64, true)) };
        // The hashes below the bound are so many of all as the bound is of all numbers.
        let part = bound as f64 / 2_f64.powi(64);
        Some((((own.hashes.len() as f64 / part) as u64).min(values), false))
    }
}

/// Of 8 bytes at a time, multiplied by odd numbers without a pattern and folded.
fn hash(text: &[u8]) -> u64 {
    const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
    const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = text.as_chunks::<8>();
    let mut state = FIRST ^ text.len() as u64;
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), SECOND);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = fold(state ^ u64::from_le_bytes(last), SECOND);
    fold(state ^ SECOND, FIRST)
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
        }
        assert_eq!(Distinct::new(0).count(5), None);
    }
}
