//! What the micro-benchmarks and the profile share: blocks and recycled memory, as the engine has them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;
use headrace_parse::memory::{Lines, Memory, MemoryHome, PADDING_BYTES};
use headrace_parse::{Block, Parsed, Parser};

/// Memory that comes back and is used again: new memory for every block would measure the kernel's page faults.
#[derive(Default)]
pub struct Shelf(Mutex<Vec<Lines>>);

impl Shelf {
    /// Memory of at least `bytes`; it comes back when its last view is dropped.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Memory {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let mut memory = Memory::from_lines(lines, Some(self.clone()));
        memory.grow(bytes);
        memory
    }
}

impl MemoryHome for Shelf {
    fn give_back(&self, lines: Lines) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(lines);
    }
}

/// A block with its padding: `fill` gets the place of `length` bytes of text.
pub fn block(mut memory: Memory, length: usize, fill: impl FnOnce(&mut [u8])) -> Buffer {
    fill(&mut memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + length]);
    memory.freeze()
}

/// Bytes of a block with `length` bytes of text.
pub fn block_bytes(length: usize) -> usize {
    length + 2 * PADDING_BYTES
}

/// Parses a block that must not have rejects.
pub fn parse(parser: &mut Parser, block: &Buffer, length: usize, slabs: &Arc<Shelf>) -> Parsed {
    let mut refuse = |reject| panic!("rejected: {reject:?}");
    let block = Block { buffer: block, from: 0, length, real_length: length, first_byte: 0, ended: false };
    match parser.parse(block, |bytes| slabs.take(bytes), &mut refuse) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error:?}"),
    }
}
