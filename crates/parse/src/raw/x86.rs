//! The structural kernels with AVX2 and AVX-512. Compiled for their instructions inside [`super::cpu::CpuPath::run`], the
//! only caller of what uses them.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::structure::{Chunk, Find, Kernel, MARKS_PER_CHUNK, Masks};

/// 32 bytes at a time. Only for a processor that has AVX2.
pub struct Avx2;

impl Kernel for Avx2 {
    #[inline(always)]
    fn scan(chunk: &Chunk, find: Find<'_>) -> Masks {
        // SAFETY: this kernel is only chosen for a processor that has AVX2.
        unsafe { scan_avx2(chunk, find) }
    }

    #[inline(always)]
    fn equal(chunk: &Chunk, byte: u8) -> u64 {
        // SAFETY: as above.
        unsafe { equal_avx2(chunk, byte) }
    }

    #[inline(always)]
    fn non_ascii(chunk: &Chunk) -> u64 {
        // SAFETY: as above.
        unsafe { non_ascii_avx2(chunk) }
    }

    #[inline(always)]
    fn high(chunk: &Chunk) -> u64 {
        // One bit per byte, as it is.
        Self::non_ascii(chunk)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn scan_avx2(chunk: &Chunk, find: Find<'_>) -> Masks {
    let (low, high) = halves(chunk);
    let equal = |byte: u8| {
        let pattern = _mm256_set1_epi8(byte as i8);
        sign_bits(_mm256_cmpeq_epi8(low, pattern), _mm256_cmpeq_epi8(high, pattern))
    };
    Masks {
        delimiters: equal(find.delimiter),
        line_feeds: equal(b'\n'),
        qualifiers: find.qualifier.map_or(0, equal),
        carriage_returns: find.qualifier.map_or(0, |_| equal(b'\r')),
        non_ascii: sign_bits(low, high),
        nul: equal(0),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal_avx2(chunk: &Chunk, byte: u8) -> u64 {
    let (low, high) = halves(chunk);
    let pattern = _mm256_set1_epi8(byte as i8);
    sign_bits(_mm256_cmpeq_epi8(low, pattern), _mm256_cmpeq_epi8(high, pattern))
}

#[inline]
#[target_feature(enable = "avx2")]
fn non_ascii_avx2(chunk: &Chunk) -> u64 {
    let (low, high) = halves(chunk);
    sign_bits(low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(chunk: &Chunk) -> (__m256i, __m256i) {
    let from = chunk.as_ptr();
    // SAFETY: a chunk is 64 bytes.
    unsafe { (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())) }
}

/// The highest bit of every byte.
#[inline]
#[target_feature(enable = "avx2")]
fn sign_bits(low: __m256i, high: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | (u64::from(_mm256_movemask_epi8(high) as u32) << 32)
}

/// 64 bytes at a time. Only for a processor that has AVX-512 BW and VBMI2.
pub struct Avx512;

impl Kernel for Avx512 {
    #[inline(always)]
    fn scan(chunk: &Chunk, find: Find<'_>) -> Masks {
        // SAFETY: this kernel is only chosen for a processor that has AVX-512 BW.
        unsafe { scan_avx512(chunk, find) }
    }

    #[inline(always)]
    fn equal(chunk: &Chunk, byte: u8) -> u64 {
        // SAFETY: as above.
        unsafe { equal_avx512(chunk, byte) }
    }

    #[inline(always)]
    fn non_ascii(chunk: &Chunk) -> u64 {
        // SAFETY: as above.
        unsafe { non_ascii_avx512(chunk) }
    }

    #[inline(always)]
    fn high(chunk: &Chunk) -> u64 {
        // One bit per byte, as it is.
        Self::non_ascii(chunk)
    }

    #[inline(always)]
    fn store(marks: u64, base: u32, room: &mut [MaybeUninit<u32>; MARKS_PER_CHUNK]) {
        // SAFETY: this kernel is only chosen for a processor that has AVX-512 VBMI2.
        unsafe { store_avx512(marks, base, room) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn scan_avx512(chunk: &Chunk, find: Find<'_>) -> Masks {
    // SAFETY: a chunk is 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
    let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
    Masks {
        delimiters: equal(find.delimiter),
        line_feeds: equal(b'\n'),
        qualifiers: find.qualifier.map_or(0, equal),
        carriage_returns: find.qualifier.map_or(0, |_| equal(b'\r')),
        non_ascii: _mm512_movepi8_mask(bytes),
        nul: _mm512_testn_epi8_mask(bytes, bytes),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal_avx512(chunk: &Chunk, byte: u8) -> u64 {
    // SAFETY: a chunk is 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
    _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn non_ascii_avx512(chunk: &Chunk) -> u64 {
    // SAFETY: a chunk is 64 bytes.
    _mm512_movepi8_mask(unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
fn store_avx512(marks: u64, base: u32, room: &mut [MaybeUninit<u32>; MARKS_PER_CHUNK]) {
    const PLACES: Chunk = {
        let mut places = [0; 64];
        let mut place = 0;
        while place < 64 {
            places[place] = place as u8;
            place += 1;
        }
        places
    };
    // SAFETY: `PLACES` is 64 bytes.
    let places = unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) };
    let found = _mm512_maskz_compress_epi8(marks, places);
    let base = _mm512_set1_epi32(base as i32);
    let store = |room: &mut [MaybeUninit<u32>], bytes: __m128i| {
        let positions = _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), base);
        debug_assert!(room.len() >= 16);
        // SAFETY: the slices below hold 16 places or more.
        unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), positions) };
    };
    let count = marks.count_ones();
    store(&mut room[..], _mm512_castsi512_si128(found));
    if count > 16 {
        store(&mut room[16..], _mm512_extracti32x4_epi32::<1>(found));
        if count > 32 {
            store(&mut room[32..], _mm512_extracti32x4_epi32::<2>(found));
            store(&mut room[48..], _mm512_extracti32x4_epi32::<3>(found));
        }
    }
}
