//! One pass over a stretch of text that writes the positions of all bytes of a small set.

use std::mem::MaybeUninit;

use super::cpu::{CpuPath, Kind, Task};
use super::portable::Portable;
use super::structure::{Chunk, Kernel, MARKS_PER_CHUNK};

/// Text that is looked through at once: its candidates stay in the second-level cache. Fuzzing has small files, and wants to see the
/// edges of windows.
pub const WINDOW_BYTES: usize = if cfg!(fuzzing) { 512 } else { 64 << 10 };

/// Positions, ascending, and what else the pass has seen.
#[derive(Default)]
pub struct Candidates {
    positions: Vec<u32>,
    /// Whether any byte is 0x80 or above.
    pub non_ascii: bool,
    /// Whether any byte is NUL.
    pub nul: bool,
}

impl Candidates {
    /// Looks for `bytes` in `text[from..]`, at most `length` bytes of it. Its positions are those in `text`, which is shorter
    /// than 4 GB.
    pub fn find(&mut self, path: CpuPath, text: &[u8], from: usize, length: usize, bytes: &[u8]) {
        let stretch = &text[from..text.len().min(from + length)];
        self.positions.clear();
        // Every byte may be one; kernels store up to one chunk of positions beyond the last.
        self.positions.reserve(stretch.len() + MARKS_PER_CHUNK);
        let room = &mut self.positions.spare_capacity_mut()[..stretch.len() + MARKS_PER_CHUNK];
        let base = from as u32;
        let seen = match path.kind() {
            Kind::Portable => path.run(Pass::<Portable>::new(stretch, base, bytes, room)),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => path.run(Pass::<super::neon::Neon>::new(stretch, base, bytes, room)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => path.run(Pass::<super::x86::Avx2>::new(stretch, base, bytes, room)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => path.run(Pass::<super::x86::Avx512>::new(stretch, base, bytes, room)),
        };
        // SAFETY: the pass initialised the first `count` places of the spare room: each chunk's positions follow those of the
        // chunk before.
        unsafe { self.positions.set_len(seen.count) };
        (self.non_ascii, self.nul) = (seen.non_ascii, seen.nul);
    }

    /// The positions.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }
}

/// What is no NUL and no part of a character of several bytes.
const FILL: u8 = 1;

#[derive(Default)]
struct Seen {
    count: usize,
    non_ascii: bool,
    nul: bool,
}

struct Pass<'a, K> {
    stretch: &'a [u8],
    base: u32,
    bytes: &'a [u8],
    room: &'a mut [MaybeUninit<u32>],
    kernel: std::marker::PhantomData<K>,
}

impl<'a, K: Kernel> Pass<'a, K> {
    fn new(stretch: &'a [u8], base: u32, bytes: &'a [u8], room: &'a mut [MaybeUninit<u32>]) -> Self {
        Pass { stretch, base, bytes, room, kernel: std::marker::PhantomData }
    }
}

impl<K: Kernel> Task for Pass<'_, K> {
    type Output = Seen;

    #[inline(always)]
    fn run(self) -> Seen {
        let (mut count, mut non_ascii, mut nul) = (0_usize, 0, 0);
        let (chunks, rest) = self.stretch.as_chunks::<MARKS_PER_CHUNK>();
        let last = Self::last_chunk(rest);
        let all = chunks.iter().chain((!rest.is_empty()).then_some(&last));
        for (index, chunk) in all.enumerate() {
            let found = self.bytes.iter().fold(0, |found, &byte| found | K::equal(chunk, byte));
            // What the last chunk is filled up with may be looked for.
            let here = if index < chunks.len() { MARKS_PER_CHUNK } else { rest.len() };
            let found = found & (u64::MAX >> (MARKS_PER_CHUNK - here));
            non_ascii |= K::non_ascii(chunk);
            nul |= K::equal(chunk, 0);
            // At most as many positions as bytes precede this chunk, and the room holds a chunk's positions more than bytes.
            let Some(room) = self.room.get_mut(count..).and_then(|room| room.first_chunk_mut()) else { break };
            K::store(found, self.base.wrapping_add((MARKS_PER_CHUNK * index) as u32), room);
            count += found.count_ones() as usize;
        }
        Seen { count, non_ascii: non_ascii != 0, nul: nul != 0 }
    }
}

impl<K> Pass<'_, K> {
    /// The bytes of the last, incomplete chunk, filled up.
    #[inline(always)]
    fn last_chunk(rest: &[u8]) -> Chunk {
        let mut chunk = [FILL; MARKS_PER_CHUNK];
        chunk[..rest.len()].copy_from_slice(rest);
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_found_behind_the_text_whatever_is_looked_for() {
        let bytes: Vec<u8> = (1..=0x7F).collect();
        for length in [0, 1, 63, 64, 65, 127] {
            let text = vec![b'x'; length];
            for path in CpuPath::available() {
                let mut candidates = Candidates::default();
                candidates.find(path, &text, 0, length, &bytes);
                let all: Vec<u32> = (0..length as u32).collect();
                assert_eq!(candidates.positions(), &all[..], "{path:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_path_finds_the_same(
            text in prop::collection::vec(prop::sample::select(b"|,\n\r\"\\#ab\x00\xC3".to_vec()), 0..400),
            from in 0_usize..80,
            length in 0_usize..400,
            bytes in prop::sample::subsequence(b"|,\n\r\"\\#a\xC3".to_vec(), 1..9),
        ) {
            let from = from.min(text.len());
            let stretch = &text[from..text.len().min(from + length)];
            let expected: Vec<u32> =
                (0..stretch.len()).filter(|&at| bytes.contains(&stretch[at])).map(|at| (from + at) as u32).collect();
            for path in CpuPath::available() {
                let mut candidates = Candidates::default();
                candidates.find(path, &text, from, length, &bytes);
                prop_assert_eq!(candidates.positions(), &expected[..], "{:?}", path);
                prop_assert_eq!(candidates.non_ascii, !stretch.is_ascii());
                prop_assert_eq!(candidates.nul, stretch.contains(&0));
            }
        }
    }
}
