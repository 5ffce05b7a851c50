//! One pass over a block that writes the positions of all delimiters and row ends outside qualifiers.
//!
//! Each instruction set has a small kernel that compares 64 bytes; everything else is written once, here.

use std::mem::MaybeUninit;

use super::cpu::{CpuPath, Kind, Task};
use super::fields::Text;
use super::portable::Portable;
use crate::automaton::{Automaton, Event, Mode};

/// The byte before the text: mark in front of the first row.
pub const BEFORE_TEXT: u32 = u32::MAX;

/// Bytes that are compared at once, and so the marks they may hold.
pub type Chunk = [u8; MARKS_PER_CHUNK];
/// Bytes of a chunk.
pub const MARKS_PER_CHUNK: usize = 64;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Find<'a> {
    /// Byte between fields.
    pub delimiter: u8,
    /// Byte that opens and closes fields.
    pub qualifier: Option<u8>,
    /// Whether a carriage return before a line feed belongs to the row end.
    pub is_crlf: bool,
    /// What qualifiers mean, of a layout with these bytes in which a line feed ends a row.
    pub automaton: &'a Automaton,
}

/// What a kernel found in a chunk, a bit per byte.
#[derive(Default)]
pub struct Masks {
    /// Delimiters.
    pub delimiters: u64,
    /// Line feeds.
    pub line_feeds: u64,
    /// Qualifiers; none when the layout has none.
    pub qualifiers: u64,
    /// Carriage returns; only if the layout has a qualifier.
    pub carriage_returns: u64,
    /// Not 0 when a byte is 0x80 or above.
    pub non_ascii: u64,
    /// Not 0 when a byte is NUL.
    pub nul: u64,
}

/// The part of the pass that depends on the instruction set.
pub trait Kernel {
    /// Compares 64 bytes.
    fn scan(chunk: &Chunk, find: Find<'_>) -> Masks;

    /// A bit for every one of 64 bytes that is `byte`.
    fn equal(chunk: &Chunk, byte: u8) -> u64;

    /// Not 0 when one of 64 bytes is 0x80 or above.
    fn non_ascii(chunk: &Chunk) -> u64;

    /// A bit for every one of 64 bytes that is 0x80 or above.
    fn high(chunk: &Chunk) -> u64;

    /// Writes the positions of the bits of `marks`, each plus `base`, to the front of `room`.
    #[inline(always)]
    fn store(mut marks: u64, base: u32, room: &mut [MaybeUninit<u32>; MARKS_PER_CHUNK]) {
        // Eight at a time whether they are there or not: the surplus is overwritten by the next chunk, and the branch is
        // taken the same way for most chunks.
        for eight in room.as_chunks_mut::<8>().0 {
            for place in eight {
                place.write(base.wrapping_add(marks.trailing_zeros()));
                marks &= marks.wrapping_sub(1);
            }
            if marks == 0 {
                break;
            }
        }
    }
}

/// What one pass found besides the positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Positions written.
    pub marks: usize,
    /// Row ends among them.
    pub row_ends: usize,
    /// Whether any byte is 0x80 or above.
    pub non_ascii: bool,
    /// Whether any byte is NUL.
    pub nul: bool,
    /// Whether a qualified field may hold a doubled qualifier.
    pub doubled: bool,
    /// Whether text may stand behind a closing qualifier.
    pub text_behind: bool,
    /// Whether a qualifier is open at the end.
    pub open: bool,
}

/// Positions of all delimiters and row ends of one block, ascending, behind one [`BEFORE_TEXT`].
#[derive(Default)]
pub struct Structure {
    marks: Vec<u32>,
    /// What the last pass found.
    pub seen: Seen,
}

impl Structure {
    /// Runs the pass. A row starts at the first byte.
    pub fn index(&mut self, path: CpuPath, text: Text<'_>, find: Find<'_>) {
        self.marks.clear();
        // Every byte may be a mark; kernels store up to one chunk of marks beyond the last.
        self.marks.reserve(text.len() + 1 + MARKS_PER_CHUNK);
        self.marks.push(BEFORE_TEXT);
        let room = &mut self.marks.spare_capacity_mut()[..text.len() + MARKS_PER_CHUNK];
        self.seen = match path.kind() {
            Kind::Portable => path.run(Pass::<Portable>::new(text, find, room)),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => path.run(Pass::<super::neon::Neon>::new(text, find, room)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => path.run(Pass::<super::x86::Avx2>::new(text, find, room)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => path.run(Pass::<super::x86::Avx512>::new(text, find, room)),
        };
        // SAFETY: the pass initialised the first `seen.marks` places of the spare room: each chunk's marks follow those of
        // the chunk before.
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

/// Marks that scratch memory keeps from block to block: one per byte of two blocks of 512 KiB.
const KEPT_MARKS: usize = 1 << 20;

/// Empties scratch memory that grew for one large row: a row of 64 MB must not cost every stream 256 MB ever after.
pub fn release_surplus(marks: &mut Vec<u32>) {
    if marks.capacity() > KEPT_MARKS {
        *marks = Vec::new();
    }
}

/// One pass with one kernel.
struct Pass<'a, K> {
    text: &'a [u8],
    find: Find<'a>,
    room: &'a mut [MaybeUninit<u32>],
    kernel: std::marker::PhantomData<K>,
}

impl<'a, K: Kernel> Pass<'a, K> {
    fn new(text: Text<'a>, find: Find<'a>, room: &'a mut [MaybeUninit<u32>]) -> Self {
        Pass { text: text.bytes(), find, room, kernel: std::marker::PhantomData }
    }
}

impl<K: Kernel> Task for Pass<'_, K> {
    type Output = Seen;

    #[inline(always)]
    fn run(self) -> Seen {
        let Pass { text, find, room, .. } = self;
        let mut seen = Seen::default();
        let mut qualified = Qualified::new(find);
        let (mut non_ascii, mut nul) = (0, 0);
        let (chunks, rest) = text.as_chunks::<MARKS_PER_CHUNK>();
        let last = last_chunk(rest, find);
        let all = chunks.iter().chain((!rest.is_empty()).then_some(&last));
        for (index, chunk) in all.enumerate() {
            let masks = K::scan(chunk, find);
            non_ascii |= masks.non_ascii;
            nul |= masks.nul;
            let length = (text.len() - MARKS_PER_CHUNK * index).min(MARKS_PER_CHUNK);
            let (delimiters, row_ends) = match find.qualifier {
                None => (masks.delimiters, masks.line_feeds),
                Some(_) => qualified.outside(chunk, length, &masks),
            };
            let marks = delimiters | row_ends;
            // At most as many marks as bytes precede this chunk, and the room holds a chunk's marks more than bytes.
            let Some(room) = room.get_mut(seen.marks..).and_then(|room| room.first_chunk_mut()) else { break };
            K::store(marks, (MARKS_PER_CHUNK * index) as u32, room);
            seen.marks += marks.count_ones() as usize;
            seen.row_ends += row_ends.count_ones() as usize;
        }
        seen.non_ascii = non_ascii != 0;
        seen.nul = nul != 0;
        seen.doubled = qualified.doubled;
        seen.text_behind = qualified.text_behind;
        seen.open = qualified.inside != 0;
        seen
    }
}

/// The bytes of the last, incomplete chunk, filled up with one that means nothing.
#[inline(always)]
fn last_chunk(rest: &[u8], find: Find<'_>) -> Chunk {
    let fill = if find.delimiter == b'1' || find.qualifier == Some(b'1') { b'2' } else { b'1' };
    let fill = if find.delimiter == fill || find.qualifier == Some(fill) { b'3' } else { fill };
    let mut chunk = [fill; MARKS_PER_CHUNK];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}

/// Where qualifiers are open, chunk by chunk.
///
/// The parity of the qualifiers says it at once for 64 bytes, if every qualifier that parity takes for an opening one stands
/// at the start of a field or directly behind a closing one (a doubled qualifier): then parity and [`Automaton`], which
/// defines what qualifiers mean, agree, byte by byte. A chunk where one stands elsewhere goes through the automaton.
struct Qualified<'a> {
    find: Find<'a>,
    /// All bits set when a qualifier was open at the end of the chunk before.
    inside: u64,
    /// 1 when the chunk before ended with: a delimiter or row end, a closing qualifier, a carriage return behind one.
    behind_mark: u64,
    behind_closing: u64,
    behind_return: u64,
    doubled: bool,
    text_behind: bool,
}

impl<'a> Qualified<'a> {
    fn new(find: Find<'a>) -> Self {
        let (inside, behind_closing, behind_return) = (0, 0, 0);
        Qualified { find, inside, behind_mark: 1, behind_closing, behind_return, doubled: false, text_behind: false }
    }

    /// The delimiters and line feeds of a chunk of `length` bytes that are outside qualifiers.
    #[inline(always)]
    fn outside(&mut self, chunk: &Chunk, length: usize, masks: &Masks) -> (u64, u64) {
        // State behind each byte.
        let inside = prefix_parity(masks.qualifiers) ^ self.inside;
        let openings = masks.qualifiers & inside;
        let closings = masks.qualifiers & !inside;
        let (delimiters, row_ends) = (masks.delimiters & !inside, masks.line_feeds & !inside);
        let marks = delimiters | row_ends;
        let behind_mark = marks << 1 | self.behind_mark;
        let behind_closing = closings << 1 | self.behind_closing;
        if openings & !(behind_mark | behind_closing) != 0 {
            return self.outside_by_automaton(chunk, length);
        }
        // A carriage return behind a closing qualifier is part of the row end if a line feed follows.
        let returns = if self.find.is_crlf { masks.carriage_returns & behind_closing } else { 0 };
        let behind_return = returns << 1 | self.behind_return;
        let valid = u64::MAX >> (MARKS_PER_CHUNK - length);
        let text_behind = (behind_closing & !(marks | masks.qualifiers | returns)) | (behind_return & !row_ends);
        self.text_behind |= text_behind & valid != 0;
        self.doubled |= openings & behind_closing != 0;
        self.inside = ((inside as i64) >> 63) as u64;
        (self.behind_mark, self.behind_closing, self.behind_return) = (marks >> 63, closings >> 63, returns >> 63);
        (delimiters, row_ends)
    }

    /// The same by definition.
    #[cold]
    #[inline(never)]
    fn outside_by_automaton(&mut self, chunk: &Chunk, length: usize) -> (u64, u64) {
        let automaton = self.find.automaton;
        let mut state = automaton.state_of(if self.inside != 0 {
            Mode::Inside
        } else if self.behind_mark != 0 {
            Mode::FieldStart
        } else if self.behind_closing != 0 {
            Mode::BehindQualifier
        } else {
            Mode::Unqualified
        });
        let (mut delimiters, mut row_ends) = (0, 0);
        for (place, &byte) in chunk[..length].iter().enumerate() {
            let step = automaton.step(state, byte);
            state = step.state;
            match step.event {
                Event::Delimiter => delimiters |= 1 << place,
                Event::RowEnd => row_ends |= 1 << place,
                _ => {}
            }
        }
        // Fields of this block are looked at one by one.
        (self.doubled, self.text_behind) = (true, true);
        let mode = automaton.mode(state);
        self.inside = if mode == Mode::Inside { u64::MAX } else { 0 };
        self.behind_mark = u64::from(matches!(mode, Mode::RowStart | Mode::FieldStart));
        self.behind_closing = u64::from(mode == Mode::BehindQualifier);
        self.behind_return = 0;
        (delimiters, row_ends)
    }
}

/// Bit i: whether the bits 0 to i hold an odd number of ones.
#[inline(always)]
fn prefix_parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::START;
    use crate::raw::memory::PADDING_BYTES;
    use headrace_types::{Column, ColumnType, Layout, RowEnd};
    use proptest::prelude::*;

    /// The automaton of a layout with these bytes whose rows end with line feeds.
    fn automaton(delimiter: u8, qualifier: Option<u8>) -> Automaton {
        let (delimiter, qualifier) = (char::from(delimiter).to_string(), qualifier.map(char::from));
        let columns = vec![Column::new("a", ColumnType::String, true)];
        Automaton::new(&Layout { delimiter, qualifier, columns, ..Layout::default() }, &RowEnd::Lf).unwrap()
    }

    /// Byte by byte; `doubled` and `text_behind` are what they must at least say.
    fn plain(bytes: &[u8], find: Find) -> (Vec<u32>, Seen) {
        let mut state = START;
        let mut seen = Seen { non_ascii: !bytes.is_ascii(), nul: bytes.contains(&0), ..Seen::default() };
        let mut marks = vec![];
        for (at, &byte) in bytes.iter().enumerate() {
            let step = find.automaton.step(state, byte);
            state = step.state;
            if matches!(step.event, Event::Delimiter | Event::RowEnd) {
                marks.push(at as u32);
            }
            seen.row_ends += usize::from(step.event == Event::RowEnd);
            seen.doubled |= step.event == Event::Rewritten;
            // A carriage return may belong to the row end; as the last byte it may be either.
            let is_row_end = find.is_crlf && (bytes[at..].starts_with(b"\r\n") || bytes[at..] == *b"\r");
            seen.text_behind |= step.text_behind && !is_row_end;
        }
        (seen.marks, seen.open) = (marks.len(), find.automaton.mode(state) == Mode::Inside);
        (marks, seen)
    }

    fn check(bytes: &[u8], delimiter: u8) {
        check_with(bytes, Find { delimiter, qualifier: None, is_crlf: false, automaton: &automaton(delimiter, None) });
    }

    fn check_qualified(bytes: &[u8], is_crlf: bool) {
        check_with(
            bytes,
            Find { delimiter: b',', qualifier: Some(b'"'), is_crlf, automaton: &automaton(b',', Some(b'"')) },
        );
    }

    fn check_with(bytes: &[u8], find: Find) {
        // Padding full of delimiters: a kernel that reads it as text is found out.
        let mut whole = vec![find.delimiter; PADDING_BYTES];
        whole.extend_from_slice(bytes);
        whole.resize(bytes.len() + 2 * PADDING_BYTES, find.delimiter);
        let text = Text::new(&whole, bytes.len()).unwrap();
        let (marks, least) = plain(bytes, find);
        for path in CpuPath::available() {
            let mut structure = Structure::default();
            structure.index(path, text, find);
            let text = bytes.escape_ascii();
            assert_eq!(structure.marks()[0], BEFORE_TEXT);
            assert_eq!(&structure.marks()[1..], marks, "{path:?} {text}");
            let Seen { doubled, text_behind, .. } = structure.seen;
            assert!(doubled >= least.doubled && text_behind >= least.text_behind, "{path:?} {text}");
            assert_eq!(structure.seen, Seen { doubled, text_behind, ..least }, "{path:?} {text}");
        }
    }

    #[test]
    fn every_short_text_at_the_end_of_a_chunk() {
        const SYMBOLS: &[u8] = b"\",\nx\r";
        let count = SYMBOLS.len();
        for number in 0..count.pow(6) {
            let short: Vec<u8> = (0..6).map(|place| SYMBOLS[number / count.pow(place) % count]).collect();
            let is_crlf = number % 2 == 0;
            // Qualified and unqualified text in front.
            let before = 57 + number % 7;
            let unqualified = vec![b'y'; before];
            let mut qualified = [b"\"", &unqualified[1..]].concat();
            check_qualified(&[&unqualified, &short[..]].concat(), is_crlf);
            check_qualified(&[&qualified, &short[..]].concat(), is_crlf);
            qualified[before - 1] = b',';
            check_qualified(&[&qualified[1..], &short[..]].concat(), is_crlf);
        }
    }

    #[test]
    fn well_formed_fields_need_no_second_look() {
        let text = b"\"a,b\",\"\",1\r\n\"c\nd\",\"e\"\r\n".repeat(40);
        let automaton = automaton(b',', Some(b'"'));
        let find = Find { delimiter: b',', qualifier: Some(b'"'), is_crlf: true, automaton: &automaton };
        let mut whole = vec![0; PADDING_BYTES];
        whole.extend(&text);
        whole.resize(text.len() + 2 * PADDING_BYTES, 0);
        for path in CpuPath::available() {
            let mut structure = Structure::default();
            structure.index(path, Text::new(&whole, text.len()).unwrap(), find);
            assert!(!structure.seen.doubled && !structure.seen.text_behind, "{path:?}");
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

        #[test]
        fn qualifiers_mean_what_the_scanner_says(bytes in prop::collection::vec(prop::sample::select(b"\"\"\"\",,\n\r\nabc\xff".to_vec()), 0..600), is_crlf: bool) {
            check_qualified(&bytes, is_crlf);
        }
    }
}
