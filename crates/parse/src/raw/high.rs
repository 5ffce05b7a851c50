//! Which bytes of a text are above 0x7F, a bit per byte.

use super::cpu::{CpuPath, Kind, Task};
use super::portable::Portable;
use super::structure::{Chunk, Kernel, MARKS_PER_CHUNK};

/// Bits that are kept from block to block, in words.
const KEPT_WORDS: usize = 1 << 16;

/// The bytes of a text that are no ASCII.
#[derive(Default)]
pub struct HighBytes {
    /// Of 64 bytes each, and one word more than those.
    words: Vec<u64>,
    /// How many they are.
    pub count: usize,
}

impl HighBytes {
    /// Looks through a text.
    pub fn find(&mut self, path: CpuPath, text: &[u8]) {
        self.words.clear();
        self.words.reserve(text.len() / MARKS_PER_CHUNK + 2);
        self.count = match path.kind() {
            Kind::Portable => path.run(Pass::<Portable>::new(text, &mut self.words)),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => path.run(Pass::<super::neon::Neon>::new(text, &mut self.words)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => path.run(Pass::<super::x86::Avx2>::new(text, &mut self.words)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => path.run(Pass::<super::x86::Avx512>::new(text, &mut self.words)),
        };
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
        if self.words.capacity() > KEPT_WORDS {
            self.words = Vec::new();
        }
    }

    /// Whether there is any in words that hold these bytes; perhaps one beside them.
    #[inline(always)]
    pub fn is_near(&self, start: u32, end: u32) -> bool {
        let words = self.words.get(start as usize / 64..=end as usize / 64).unwrap_or(&self.words);
        words.iter().fold(0, |any, word| any | word) != 0
    }

    /// Whether there is any among these bytes: 1 or 0.
    #[inline(always)]
    pub fn any(&self, start: u32, end: u32) -> u8 {
        let (first, shift, length) = (start as usize / 64, start % 64, end - start);
        let [low, high] = match self.words.get(first..first + 2) {
            Some(&[low, high]) => [low, high],
            _ => return 0,
        };
        let bits = low >> shift | (high << 1) << (63 - shift);
        let found = bits & u64::MAX.unbounded_shr(64 - length.min(64)) != 0;
        u8::from(found) | if length > 64 && !found { self.any_of_long(start, end) } else { 0 }
    }

    #[inline(never)]
    fn any_of_long(&self, start: u32, end: u32) -> u8 {
        // The first 64 bytes hold none, so that those before the last word do not matter.
        let (first, last) = (start as usize / 64 + 1, end as usize / 64);
        let whole = self.words.get(first..last).unwrap_or_default().iter().any(|word| *word != 0);
        let rest = self.words.get(last).copied().unwrap_or(0) & !u64::MAX.unbounded_shl(end % 64);
        u8::from(whole || (last >= first && rest != 0))
    }
}

struct Pass<'a, K> {
    text: &'a [u8],
    words: &'a mut Vec<u64>,
    kernel: std::marker::PhantomData<K>,
}

impl<'a, K: Kernel> Pass<'a, K> {
    fn new(text: &'a [u8], words: &'a mut Vec<u64>) -> Self {
        Pass { text, words, kernel: std::marker::PhantomData }
    }
}

impl<K: Kernel> Task for Pass<'_, K> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let (chunks, rest) = self.text.as_chunks::<MARKS_PER_CHUNK>();
        let mut last: Chunk = [0; MARKS_PER_CHUNK];
        last[..rest.len()].copy_from_slice(rest);
        self.words.extend(chunks.iter().chain([&last]).map(|chunk| K::high(chunk)));
        self.words.push(0);
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_path_finds_the_same(
            text in prop::collection::vec(prop::sample::select(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x7F\x80\xFF".to_vec()), 0..400),
            start in 0_usize..400,
            length in 0_usize..300,
        ) {
            let start = start.min(text.len());
            let end = (start + length).min(text.len());
            let expected = !text[start..end].is_ascii();
            for path in CpuPath::available() {
                let mut high = HighBytes::default();
                high.find(path, &text);
                prop_assert_eq!(high.any(start as u32, end as u32), u8::from(expected), "{:?}", path);
                prop_assert!(high.is_near(start as u32, end as u32) || !expected);
                prop_assert_eq!(high.count, text.iter().filter(|byte| !byte.is_ascii()).count());
            }
        }
    }
}
