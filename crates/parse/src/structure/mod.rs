//! One pass over a block that writes the positions of all delimiters and row ends.
//!
//! Three implementations with one contract, chosen once at run time; `HEADRACE_CPU` forces one (tests, bug reports).

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::CpuPath;
use crate::fields::Text;

/// The byte before the text: mark in front of the first row.
pub const BEFORE_TEXT: u32 = u32::MAX;

/// What one pass found besides the positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Positions written.
    pub marks: usize,
    /// Line feeds among them.
    pub line_feeds: usize,
    /// Whether any byte is 0x80 or above.
    pub non_ascii: bool,
    /// Whether any byte is NUL.
    pub nul: bool,
}

/// Positions of all delimiters and line feeds of one block, ascending, behind one [`BEFORE_TEXT`].
#[derive(Default)]
pub struct Structure {
    marks: Vec<u32>,
    /// What the last pass found.
    pub seen: Seen,
}

impl Structure {
    /// Runs the pass. Positions are 32 bits, so a block is at most 2 GiB (checked by the caller's `max_row`).
    pub fn index(&mut self, path: CpuPath, text: Text<'_>, delimiter: u8) {
        self.marks.clear();
        // Every byte may be a mark; kernels store up to one vector (64 marks) beyond the last.
        self.marks.reserve(text.len() + 1 + SLACK_MARKS);
        self.marks.push(BEFORE_TEXT);
        let room = &mut self.marks.spare_capacity_mut()[..text.len() + SLACK_MARKS];
        self.seen = match path {
            CpuPath::Portable => portable::index(text.bytes(), delimiter, room),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a path is only chosen when the processor has its instructions (`cpu_path`), and `room` holds
            // `len + SLACK_MARKS` marks.
            CpuPath::Avx2 => unsafe { x86::index_avx2(text.bytes(), delimiter, room) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            CpuPath::Avx512 => unsafe { x86::index_avx512(text.bytes(), delimiter, room) },
        };
        // SAFETY: the kernels initialised the first `seen.marks` places of the spare room.
        unsafe { self.marks.set_len(1 + self.seen.marks) };
    }

    /// Gives back what a block far beyond the usual size needed.
    pub fn release_surplus(&mut self) {
        release_surplus(&mut self.marks);
    }

    /// [`BEFORE_TEXT`] and then the positions.
    pub fn marks(&self) -> &[u32] {
        &self.marks
    }
}

/// Marks that scratch memory keeps from block to block: twice those of a block of 1 MiB.
const KEPT_MARKS: usize = 2 << 20;

/// Empties scratch memory that grew for one large row: a row of 64 MB must not cost every stream 256 MB ever after.
pub fn release_surplus(marks: &mut Vec<u32>) {
    if marks.capacity() > KEPT_MARKS {
        *marks = Vec::new();
    }
}

/// Marks a kernel may store behind the last one.
const SLACK_MARKS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::PADDING_BYTES;
    use proptest::prelude::*;

    fn plain(bytes: &[u8], delimiter: u8) -> (Vec<u32>, Seen) {
        let marks: Vec<u32> =
            (0..bytes.len()).filter(|&at| bytes[at] == delimiter || bytes[at] == b'\n').map(|at| at as u32).collect();
        let seen = Seen {
            marks: marks.len(),
            line_feeds: bytes.iter().filter(|&&byte| byte == b'\n').count(),
            non_ascii: !bytes.is_ascii(),
            nul: bytes.contains(&0),
        };
        (marks, seen)
    }

    fn check(bytes: &[u8], delimiter: u8) {
        // Padding full of delimiters: a kernel that reads it as text is found out.
        let mut whole = vec![delimiter; PADDING_BYTES];
        whole.extend_from_slice(bytes);
        whole.resize(bytes.len() + 2 * PADDING_BYTES, delimiter);
        let text = Text::new(&whole, bytes.len()).unwrap();
        let (marks, seen) = plain(bytes, delimiter);
        for path in CpuPath::available() {
            let mut structure = Structure::default();
            structure.index(path, text, delimiter);
            assert_eq!(structure.marks()[0], BEFORE_TEXT);
            assert_eq!(&structure.marks()[1..], marks, "{path:?} {bytes:?}");
            assert_eq!(structure.seen, seen, "{path:?}");
        }
    }

    #[test]
    fn dense_and_sparse_blocks() {
        for length in 0..200 {
            check(&vec![b'|'; length], b'|');
            check(&vec![b'\n'; length], b'|');
            check(&vec![b'x'; length], b'|');
            check(&vec![0; length], b'|');
            check(&vec![0x80; length], b'|');
            // Neighbours of the delimiter: borrow between bytes must not leak.
            check(&vec![b'|' + 1; length], b'|');
            check(&vec![b'|' ^ 0x80; length], b'|');
        }
    }

    proptest! {
        #[test]
        fn every_path_equals_the_plain_scan(bytes in prop::collection::vec(prop::sample::select(b"|\n\r\0\x01ab\x0b{\x80\xfc\xff,".to_vec()), 0..600), delimiter in prop::sample::select(b"|,\t\x01".to_vec())) {
            check(&bytes, delimiter);
        }
    }
}
