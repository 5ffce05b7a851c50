//! Memory in which rows are found at random.
//!
//! An index is many times as large as what the processor's table of pages of 4 KB covers, so that each probe asks for the
//! page too, and on virtual machines that is several reads of memory more. Pages of 2 MB are as many as it covers.

#![allow(unsafe_code)]

/// Memory that is smaller is left as it is.
const LEAST_BYTES: usize = 4 << 20;

/// Asks for large pages for memory which nothing has been written to yet. Where there are none it is as it was.
pub fn prefer<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    if bytes < LEAST_BYTES {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // Small pages have 4 KB, or more on some processors: a part of one at either end stays as it is.
        const PAGE_BYTES: usize = 64 << 10;
        let start = memory.as_mut_ptr().cast::<libc::c_void>();
        let before = start.align_offset(PAGE_BYTES);
        let advised = bytes.saturating_sub(before) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the range is within `memory`, which is borrowed alone; the advice changes neither what is in it nor
        // what may be done with it. What it returns does not matter.
        unsafe {
            libc::madvise(start.wrapping_byte_add(before), advised, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_what_it_was() {
        for bytes in [0, 1, LEAST_BYTES - 1, LEAST_BYTES, LEAST_BYTES + 12_345] {
            let mut memory = vec![7_u8; bytes];
            prefer(&mut memory);
            assert!(memory.iter().all(|byte| *byte == 7));
            let mut room = Vec::<u64>::with_capacity(bytes);
            prefer(room.spare_capacity_mut());
            room.extend(0..bytes as u64);
            assert!((0..).zip(&room).all(|(place, value)| place == *value));
        }
    }
}
