//! Aligned memory that goes back to where it came from when the last Arrow array that views it is released.

use std::mem::size_of;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;

/// Bytes that may be read, but hold no data, before and after the text of a block. SIMD loads need 64.
pub const PADDING_BYTES: usize = 64;

/// One cache line; makes every allocation 64-byte aligned, as Arrow recommends.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Line([u8; 64]);

/// Storage of one [`Memory`].
pub type Lines = Vec<Line>;

/// Takes storage back. Called on whatever thread drops the memory, possibly a foreign one: must not block for long,
/// must not unwind.
pub trait MemoryHome: Send + Sync + RefUnwindSafe {
    /// Takes the storage of a dropped [`Memory`].
    fn give_back(&self, lines: Lines);
}

/// A piece of zero-initialised or recycled memory, exclusively owned until it is frozen into an Arrow buffer.
pub struct Memory {
    lines: Lines,
    home: Option<Arc<dyn MemoryHome>>,
}

impl Memory {
    /// New memory of at least `bytes` bytes without a home.
    pub fn new(bytes: usize) -> Self {
        Memory::from_lines(new_lines(bytes), None)
    }

    /// Memory around recycled storage.
    pub fn from_lines(lines: Lines, home: Option<Arc<dyn MemoryHome>>) -> Self {
        Memory { lines, home }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// Grows to at least `bytes`; the contents are lost.
    pub fn grow(&mut self, bytes: usize) {
        if self.capacity_bytes() < bytes {
            // Freed first, so that both never exist at once.
            self.lines = Vec::new();
            self.lines = new_lines(bytes);
        }
    }

    /// Grows to at least `bytes` and keeps the contents.
    pub fn extend(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(size_of::<Line>());
        if self.lines.len() < lines {
            self.lines.resize(lines, Line([0; 64]));
        }
    }

    /// All bytes, readable.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `lines` is a contiguous array of initialised 64-byte plain values; u8 has alignment 1.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.capacity_bytes()) }
    }

    /// All bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let capacity_bytes = self.capacity_bytes();
        // SAFETY: as in `bytes`; `&mut self` proves that nothing else refers to the memory.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), capacity_bytes) }
    }

    /// Freezes the memory. It goes home when the last clone of the buffer is dropped.
    pub fn freeze(self) -> Buffer {
        let length = self.capacity_bytes();
        let pointer = NonNull::new(self.lines.as_ptr() as *mut u8).unwrap_or(NonNull::dangling());
        // SAFETY: the pointer is valid for `length` bytes as long as `self` lives, and `self` is kept by the buffer; a
        // Vec's storage does not move when the Vec is moved. Nothing writes to it any more: `self` is given away.
        unsafe { Buffer::from_custom_allocation(pointer, length, Arc::new(self)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.give_back(std::mem::take(&mut self.lines));
        }
    }
}

fn new_lines(bytes: usize) -> Lines {
    vec![Line([0; 64]); bytes.div_ceil(size_of::<Line>())]
}

/// Hands out the parts of one memory as typed slices, one after the other, each 64-byte aligned.
pub struct Carver<'a> {
    rest: &'a mut [Line],
    start: *const Line,
}

/// Plain values for which every bit pattern is valid.
///
/// # Safety
/// Implementors have no padding, no invalid bit patterns and an alignment that divides 64.
pub unsafe trait Plain: Copy {}
// SAFETY: primitive integers and floats.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for i128 {}
// SAFETY: as above.
unsafe impl Plain for u128 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}

/// Bytes that [`Carver::carve`] uses for `count` values of `T`.
pub const fn carved_bytes<T: Plain>(count: usize) -> usize {
    (count * size_of::<T>()).div_ceil(size_of::<Line>()) * size_of::<Line>()
}

impl<'a> Carver<'a> {
    /// Carves from the start of `memory`.
    pub fn new(memory: &'a mut Memory) -> Self {
        Carver { start: memory.lines.as_ptr(), rest: &mut memory.lines }
    }

    /// The next `count` values and their byte offset in the memory; `None` when the memory is too small.
    pub fn carve<T: Plain>(&mut self, count: usize) -> Option<(usize, &'a mut [T])> {
        let lines = carved_bytes::<T>(count) / size_of::<Line>();
        if lines > self.rest.len() {
            return None;
        }
        let (taken, rest) = std::mem::take(&mut self.rest).split_at_mut(lines);
        self.rest = rest;
        let offset_bytes = taken.as_ptr() as usize - self.start as usize;
        // SAFETY: `taken` is exclusively ours for 'a, holds at least `count * size_of::<T>()` initialised bytes, starts at a
        // multiple of 64, and `T: Plain` accepts every bit pattern.
        let values = unsafe { std::slice::from_raw_parts_mut(taken.as_mut_ptr().cast::<T>(), count) };
        Some((offset_bytes, values))
    }
}

/// The bytes as values; `None` when they do not start at a multiple of the values' alignment. Bytes left over are left out.
pub fn values_mut<T: Plain>(bytes: &mut [u8]) -> Option<&mut [T]> {
    let start = bytes.as_mut_ptr().cast::<T>();
    // SAFETY: aligned (checked), inside the exclusively borrowed bytes, and `T: Plain` accepts every bit pattern.
    start.is_aligned().then(|| unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<T>()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Shelf(Mutex<Vec<usize>>);
    impl MemoryHome for Shelf {
        fn give_back(&self, lines: Lines) {
            self.0.lock().unwrap().push(lines.len());
        }
    }

    #[test]
    fn memory_goes_home_when_the_last_view_is_dropped() {
        let shelf = Arc::new(Shelf(Mutex::new(vec![])));
        let memory = Memory::from_lines(new_lines(100), Some(shelf.clone()));
        let buffer = memory.freeze();
        let view = buffer.slice_with_length(10, 5);
        drop(buffer);
        assert!(shelf.0.lock().unwrap().is_empty());
        drop(view);
        assert_eq!(*shelf.0.lock().unwrap(), [2]);
    }

    #[test]
    fn carved_parts_are_aligned_and_disjoint() {
        let mut memory = Memory::new(carved_bytes::<u8>(3) + carved_bytes::<i64>(9));
        let mut carver = Carver::new(&mut memory);
        let (first_offset, first) = carver.carve::<u8>(3).unwrap();
        let (second_offset, second) = carver.carve::<i64>(9).unwrap();
        first.fill(1);
        second.fill(-1);
        assert_eq!((first_offset, second_offset), (0, 64));
        assert!(carver.carve::<u8>(1).is_none());
        assert_eq!(&memory.bytes()[..4], [1, 1, 1, 0]);
    }
}
