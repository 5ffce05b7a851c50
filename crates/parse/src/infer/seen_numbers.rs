//! Small numbers whose texts were counted among the different ones.

/// Numbers that are told apart.
const NUMBERS: usize = 1 << 16;

/// A bit for each of so many numbers from a first one on.
#[derive(Debug, Clone)]
pub struct SeenNumbers {
    first: i64,
    bits: Box<[u64; NUMBERS / 64]>,
}

impl SeenNumbers {
    /// None yet.
    pub fn new(first: i64) -> Self {
        SeenNumbers { first, bits: Box::new([0; NUMBERS / 64]) }
    }

    /// Whether all numbers between these are told apart.
    #[inline(always)]
    pub fn covers(&self, least: i64, greatest: i64) -> bool {
        least >= self.first && greatest < self.first.saturating_add(NUMBERS as i64)
    }

    /// Whether a number that is covered is new. Of others any answer.
    #[inline(always)]
    pub fn is_new(&self, number: i64) -> bool {
        let place = number.wrapping_sub(self.first) as u16 as usize;
        self.bits[place / 64] >> (place % 64) & 1 == 0
    }

    /// Notes a number that is covered.
    pub fn add(&mut self, number: i64) {
        let place = number.wrapping_sub(self.first) as u16 as usize;
        self.bits[place / 64] |= 1 << (place % 64);
    }
}
