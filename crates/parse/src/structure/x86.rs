//! The structural pass with AVX2 and AVX-512.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::Seen;

/// Bits of one 64-byte chunk.
struct Chunk {
    delimiters: u64,
    line_feeds: u64,
    non_ascii: u64,
    nul: u64,
}

/// Writes the positions of `delimiter` and line feed in `bytes` to `room`.
///
/// # Safety
/// The processor must have AVX-512 BW and VBMI2; `room` must hold `bytes.len() + 64` places.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt,bmi1,bmi2")]
pub unsafe fn index_avx512(bytes: &[u8], delimiter: u8, room: &mut [MaybeUninit<u32>]) -> Seen {
    let delimiters = _mm512_set1_epi8(delimiter as i8);
    let line_feeds = _mm512_set1_epi8(b'\n' as i8);
    let mut iota_bytes = [0_u8; 64];
    for (index, byte) in iota_bytes.iter_mut().enumerate() {
        *byte = index as u8;
    }
    // SAFETY: 64 readable bytes.
    let iota = unsafe { _mm512_loadu_si512(iota_bytes.as_ptr().cast()) };
    let mut seen = Seen::default();
    let (mut non_ascii, mut nul) = (0, 0);
    let mut base = 0;
    while base < bytes.len() {
        let left = bytes.len() - base;
        let valid = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
        // SAFETY: masked-out bytes are not read; the others lie in `bytes`.
        let chunk = unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().add(base).cast()) };
        let ends = _mm512_mask_cmpeq_epi8_mask(valid, chunk, line_feeds);
        let marks = ends | _mm512_mask_cmpeq_epi8_mask(valid, chunk, delimiters);
        non_ascii |= _mm512_movepi8_mask(chunk);
        nul |= _mm512_mask_testn_epi8_mask(valid, chunk, chunk);
        seen.line_feeds += ends.count_ones() as usize;
        let count = marks.count_ones() as usize;
        let positions = _mm512_maskz_compress_epi8(marks, iota);
        let base_vector = _mm512_set1_epi32(base as i32);
        // SAFETY: at most `base` marks precede this chunk and at most 64 are stored behind them: inside
        // `bytes.len() + 64` places.
        unsafe {
            let out = room.as_mut_ptr().add(seen.marks).cast::<i32>();
            store_16(out, base_vector, _mm512_castsi512_si128(positions));
            if count > 16 {
                store_16(out.add(16), base_vector, _mm512_extracti32x4_epi32::<1>(positions));
                if count > 32 {
                    store_16(out.add(32), base_vector, _mm512_extracti32x4_epi32::<2>(positions));
                    store_16(out.add(48), base_vector, _mm512_extracti32x4_epi32::<3>(positions));
                }
            }
        }
        seen.marks += count;
        base += 64;
    }
    seen.non_ascii = non_ascii != 0;
    seen.nul = nul != 0;
    seen
}

/// Widens 16 byte positions, adds the base, stores them.
///
/// # Safety
/// `out` must have room for 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_16(out: *mut i32, base: __m512i, positions: __m128i) {
    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(positions), base);
    // SAFETY: the caller's promise.
    unsafe { _mm512_storeu_si512(out.cast(), wide) };
}

/// Writes the positions of `delimiter` and line feed in `bytes` to `room`.
///
/// # Safety
/// The processor must have AVX2; `room` must hold `bytes.len() + 64` places.
#[target_feature(enable = "avx2,popcnt,bmi1")]
pub unsafe fn index_avx2(bytes: &[u8], delimiter: u8, room: &mut [MaybeUninit<u32>]) -> Seen {
    let mut seen = Seen::default();
    let (mut non_ascii, mut nul) = (0, 0);
    let mut base = 0;
    while base < bytes.len() {
        let left = bytes.len() - base;
        let mut tail = [0_u8; 64];
        let (from, valid) = if left >= 64 {
            (bytes[base..].as_ptr(), u64::MAX)
        } else {
            tail[..left].copy_from_slice(&bytes[base..]);
            (tail.as_ptr(), (1 << left) - 1)
        };
        // SAFETY: `from` has 64 readable bytes: either of `bytes` or of `tail`.
        let chunk = unsafe { scan_64(from, delimiter) };
        non_ascii |= chunk.non_ascii & valid;
        nul |= chunk.nul & valid;
        let ends = chunk.line_feeds & valid;
        let mut marks = ends | (chunk.delimiters & valid);
        seen.line_feeds += ends.count_ones() as usize;
        let mut at = seen.marks;
        seen.marks += marks.count_ones() as usize;
        // Eight at a time whether they are there or not: the surplus is overwritten by the next chunk, and the branch is
        // taken the same way for most chunks.
        while marks != 0 {
            for slot in &mut room[at..at + 8] {
                slot.write((base as u32).wrapping_add(marks.trailing_zeros()));
                marks &= marks.wrapping_sub(1);
            }
            at += 8;
        }
        base += 64;
    }
    seen.non_ascii = non_ascii != 0;
    seen.nul = nul != 0;
    seen
}

/// Compares 64 bytes.
///
/// # Safety
/// `from` must have 64 readable bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn scan_64(from: *const u8, delimiter: u8) -> Chunk {
    // SAFETY: the caller's promise.
    let (low, high) = unsafe { (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())) };
    let bits = |low: __m256i, high: __m256i| {
        u64::from(_mm256_movemask_epi8(low) as u32) | (u64::from(_mm256_movemask_epi8(high) as u32) << 32)
    };
    let equal = |byte: u8| {
        let pattern = _mm256_set1_epi8(byte as i8);
        bits(_mm256_cmpeq_epi8(low, pattern), _mm256_cmpeq_epi8(high, pattern))
    };
    Chunk { delimiters: equal(delimiter), line_feeds: equal(b'\n'), non_ascii: bits(low, high), nul: equal(0) }
}
