//! The structural kernel with NEON, which every 64-bit ARM processor has.

use std::arch::aarch64::*;

use super::structure::{Chunk, Find, Kernel, Masks};

/// 16 bytes at a time.
pub struct Neon;

impl Kernel for Neon {
    #[inline(always)]
    fn scan(chunk: &Chunk, find: Find<'_>) -> Masks {
        // SAFETY: NEON is part of the architecture's base (Rust's aarch64 targets enable it), a chunk is 64 bytes.
        unsafe {
            let parts = parts_of(chunk);
            let equal = |byte: u8| {
                let pattern = vdupq_n_u8(byte);
                bits(parts.map(|part| vceqq_u8(part, pattern)))
            };
            Masks {
                delimiters: equal(find.delimiter),
                line_feeds: equal(b'\n'),
                qualifiers: find.qualifier.map_or(0, &equal),
                carriage_returns: find.qualifier.map_or(0, |_| equal(b'\r')),
                non_ascii: u64::from(vmaxvq_u8(any(parts)) >> 7),
                nul: equal(0),
            }
        }
    }

    #[inline(always)]
    fn equal(chunk: &Chunk, byte: u8) -> u64 {
        // SAFETY: as above.
        unsafe {
            let pattern = vdupq_n_u8(byte);
            bits(parts_of(chunk).map(|part| vceqq_u8(part, pattern)))
        }
    }

    #[inline(always)]
    fn high(chunk: &Chunk) -> u64 {
        // SAFETY: as above.
        unsafe {
            let lowest = vdupq_n_u8(0x80);
            bits(parts_of(chunk).map(|part| vcgeq_u8(part, lowest)))
        }
    }

    #[inline(always)]
    fn non_ascii(chunk: &Chunk) -> u64 {
        // SAFETY: as above.
        unsafe { u64::from(vmaxvq_u8(any(parts_of(chunk))) >> 7) }
    }
}

#[inline(always)]
unsafe fn parts_of(chunk: &Chunk) -> [uint8x16_t; 4] {
    let from = chunk.as_ptr();
    // SAFETY: NEON is part of the architecture's base; a chunk is 64 bytes.
    unsafe { [vld1q_u8(from), vld1q_u8(from.add(16)), vld1q_u8(from.add(32)), vld1q_u8(from.add(48))] }
}

/// All bits of the four vectors, one over the other.
#[inline(always)]
unsafe fn any(parts: [uint8x16_t; 4]) -> uint8x16_t {
    // SAFETY: NEON is part of the architecture's base.
    unsafe { vorrq_u8(vorrq_u8(parts[0], parts[1]), vorrq_u8(parts[2], parts[3])) }
}

/// One bit per byte of 64 bytes that are 0 or 255: each byte keeps the bit of its place in eight, and neighbours are added
/// until eight of them are one byte.
#[inline(always)]
unsafe fn bits(parts: [uint8x16_t; 4]) -> u64 {
    const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: NEON is part of the architecture's base; `PLACES` is 16 bytes.
    unsafe {
        let places = vld1q_u8(PLACES.as_ptr());
        let [first, second, third, fourth] = parts.map(|part| vandq_u8(part, places));
        let sums = vpaddq_u8(vpaddq_u8(first, second), vpaddq_u8(third, fourth));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}
