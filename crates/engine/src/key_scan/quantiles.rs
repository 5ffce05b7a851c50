//! Bounds between parts of equally many keys, found in ever narrower buckets.

use headrace_transform::partition::Key;
use headrace_types::{CoreError, ErrorKind};

use super::counts::Counts;
use super::refusal;
use super::sink::Found;

/// More parts than any target has partitions. Far fewer than pages of counters, so that each pass makes buckets narrower.
const MAX_PARTS: usize = 10_000;

/// Buckets of which a pass counts the keys.
pub struct Parents {
    /// Keys of a bucket lie less than `1 << shift` apart.
    shift: u32,
    /// Ascending.
    buckets: Vec<Key>,
}

impl Parents {
    /// Whether a key lies in one of them.
    pub fn contain(&self, key: Key) -> bool {
        self.buckets.binary_search(&(key >> self.shift)).is_ok()
    }
}

/// The bounds, as far as they are known.
pub struct Quantiles {
    minimum: Option<Key>,
    shift: u32,
    places: Vec<Place>,
}

/// Where a bound lies.
struct Place {
    /// Keys before it, in the order of keys.
    rank: u64,
    /// The bucket that holds it; none before the first pass.
    bucket: Option<Key>,
    /// Keys below that bucket.
    below: u64,
}

impl Quantiles {
    /// Bounds of as many parts, from the counts of all keys.
    ///
    /// # Errors
    /// `Specification` for too many or no parts.
    pub fn new(parts: usize, all: &Found) -> Result<Self, CoreError> {
        if parts == 0 || parts > MAX_PARTS {
            return Err(refusal(format!("{parts} parts are outside 1..{MAX_PARTS}")));
        }
        let keys = u128::from(all.rows - all.nulls);
        let ranks = (1..parts).map(|part| (part as u128 * keys / parts as u128) as u64).filter(|_| keys > 0);
        let places = ranks.map(|rank| Place { rank, bucket: None, below: 0 }).collect();
        let mut quantiles = Quantiles { minimum: all.range.map(|(least, _)| least), shift: u32::MAX, places };
        quantiles.narrow(&all.counts)?;
        Ok(quantiles)
    }

    /// The buckets in which a bound lies; none once every bucket is one key.
    pub fn open(&self) -> Option<Parents> {
        if self.shift == 0 || self.places.is_empty() {
            return None;
        }
        let mut buckets: Vec<Key> = self.places.iter().filter_map(|place| place.bucket).collect();
        buckets.dedup();
        Some(Parents { shift: self.shift, buckets })
    }

    /// Finds the bounds in the counts of the keys of [`Quantiles::open`].
    ///
    /// # Errors
    /// `Internal` when the keys are not those of the pass before.
    pub fn narrow(&mut self, counts: &Counts) -> Result<(), CoreError> {
        let others = || CoreError::new(ErrorKind::Internal, "key scan: another pass over the files gave other keys");
        if counts.shift() >= self.shift {
            return Err(others());
        }
        let steps = self.shift - counts.shift();
        let buckets = counts.ascending();
        let (mut parent, mut at, mut below) = (None, 0, 0);
        for place in &mut self.places {
            if let Some(bucket) = place.bucket.filter(|_| place.bucket != parent) {
                at = buckets.partition_point(|&(narrower, _)| narrower >> steps < bucket);
                below = place.below;
            }
            parent = place.bucket;
            let (bucket, _) = loop {
                match buckets.get(at) {
                    Some(&(bucket, count)) if place.rank < below + count => break (bucket, count),
                    Some((_, count)) => (at, below) = (at + 1, below + count),
                    None => return Err(others()),
                }
            };
            (place.bucket, place.below) = (Some(bucket), below);
        }
        self.shift = counts.shift();
        Ok(())
    }

    /// The bounds, when no bucket is open any more: ascending, each once, none of them the least key.
    pub fn bounds(self) -> Vec<Key> {
        let mut bounds: Vec<Key> = self.places.into_iter().filter_map(|place| place.bucket).collect();
        bounds.dedup();
        bounds.retain(|&bound| Some(bound) != self.minimum);
        bounds
    }
}
