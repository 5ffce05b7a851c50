//! Where a file may be cut: exact, whatever the dialect, and in most files without reading what lies between the cuts.
//!
//! At a place in the middle of a file nobody knows what the bytes before have opened. So the automaton runs from there from all
//! of its states at once. They meet: behind a field whose qualifiers are followed by text, behind an escape, at the next row end
//! where nothing can hide it. Once they have met, the next row end is one whatever stands before. Where they do not meet in
//! [`NEAR_BYTES`] (no qualifier anywhere; text that holds other text of the same dialect), the pieces between such places are read
//! whole, from every state, side by side; what was true is known from the left.
//!
//! Nobody reads from one place further than to the next one: a row that goes on there ends where that place says. So a row of any
//! length is read a few times, and not once for each place in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use headrace_parse::{Automaton, START};
use headrace_types::{CoreError, Encoding, ErrorKind};

use super::read_some;
use crate::outcome::lock;
use crate::source::{ByteSource, Stop, decoded};

/// Bytes read at once, at most.
const WINDOW_BYTES: usize = 256 << 10;
/// The same near a place, where a row or two are usually enough.
const NEAR_WINDOW_BYTES: usize = 16 << 10;
/// The least: room for any character, however it is encoded.
const LEAST_WINDOW_BYTES: usize = 16;
/// Bytes between two looks whether states have met.
const STEP_BYTES: usize = 64;
/// How far states may take to meet before a piece is read whole.
const NEAR_BYTES: u64 = 1 << 20;
/// Automata with more states (columns with delimiters of their own) are not run from all of them.
const MOST_STATES: u32 = 64;

/// Text that can be read from any place of it.
pub trait Text: Sync {
    /// The stage text of the bytes between two places.
    fn reader(&self, from: u64, to: u64) -> io::Result<Box<dyn Read + '_>>;

    /// How its bytes stand for characters.
    fn encoding(&self) -> Encoding;
}

/// Text of a file that is not compressed.
pub struct FileText<'a> {
    /// The file.
    pub file: &'a File,
    /// How its bytes stand for characters.
    pub encoding: Encoding,
    /// Set when nobody waits for the cuts any more: reading ends with an error.
    pub stop: &'a Stop,
}

impl Text for FileText<'_> {
    fn reader(&self, from: u64, to: u64) -> io::Result<Box<dyn Read + '_>> {
        let bytes = FileFrom { file: self.file, at: from, stop: self.stop }.take(to.saturating_sub(from));
        if !self.encoding.is_utf16() {
            return Ok(Box::new(bytes));
        }
        Ok(Box::new(Reader(decoded(Bytes(bytes), self.encoding))))
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }
}

/// A source, read as others are.
pub struct Reader<'a>(pub Box<dyn ByteSource + 'a>);

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(io::Error::other)
    }
}

/// What can be read, as a source.
struct Bytes<R>(R);

impl<R: Read + Send> ByteSource for Bytes<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        let failed =
            |error: io::Error| CoreError::new(ErrorKind::Source, "cannot read a source file").found(error.to_string());
        self.0.read(into).map_err(|error| error.downcast().unwrap_or_else(failed))
    }

    fn taken_bytes(&self) -> u64 {
        0
    }
}

struct FileFrom<'a> {
    file: &'a File,
    at: u64,
    stop: &'a Stop,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        let count = read_some(self.file, into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A text and what its bytes mean.
pub struct Cutter<'a> {
    text: &'a dyn Text,
    automaton: &'a Automaton,
    /// Byte after the last.
    end: u64,
}

/// The states of an automaton on their way through a file; those that have met are one lane.
struct Lanes {
    /// Lane of every state it began in.
    starts: Vec<usize>,
    /// Where the lanes are now.
    states: Vec<u32>,
    /// Byte behind the first row end since there is one lane only.
    row_end: Option<u64>,
}

impl Lanes {
    fn of_all(automaton: &Automaton) -> Self {
        let states: Vec<u32> = (0..automaton.states()).collect();
        Lanes { starts: (0..states.len()).collect(), states, row_end: None }
    }

    fn of_one(state: u32) -> Self {
        Lanes { starts: vec![0], states: vec![state], row_end: None }
    }

    /// Runs through text that stands at `at_byte` of the file.
    fn run(&mut self, automaton: &Automaton, encoding: Encoding, text: &[u8], mut at_byte: u64) {
        for piece in text.chunks(STEP_BYTES) {
            let is_one = self.states.len() == 1;
            for state in &mut self.states {
                let mut at = 0;
                while let (next, Some(end)) = automaton.next_row_end(*state, &piece[at..]) {
                    (*state, at) = (next, at + end + 1);
                    if is_one {
                        self.row_end.get_or_insert_with(|| at_byte + encoding.source_bytes(&piece[..at]));
                    }
                }
                *state = automaton.next_row_end(*state, &piece[at..]).0;
            }
            at_byte += encoding.source_bytes(piece);
            self.merge();
        }
    }

    fn merge(&mut self) {
        let mut lanes = BTreeMap::new();
        for &state in &self.states {
            let next = lanes.len();
            lanes.entry(state).or_insert(next);
        }
        if lanes.len() < self.states.len() {
            self.starts.iter_mut().for_each(|lane| *lane = lanes[&self.states[*lane]]);
            self.states.truncate(lanes.len());
            lanes.into_iter().for_each(|(state, lane)| self.states[lane] = state);
        }
    }

    /// Where the state of that number has led.
    fn behind(&self, start: u32) -> u32 {
        self.states[self.starts[start as usize]]
    }
}

/// A piece in front of a place where the states did not meet.
#[derive(Clone, Copy)]
enum Piece {
    /// From this byte, where a row begins.
    FromRow(u64),
    /// From the place before, where they did not meet either.
    FromPlace(u64),
}

impl<'a> Cutter<'a> {
    /// For a text that ends before `end`.
    pub fn new(text: &'a dyn Text, automaton: &'a Automaton, end: u64) -> Self {
        Cutter { text, automaton, end }
    }

    /// For each of the ascending places the byte behind a row end at or after it; `None` where there is none before the end of
    /// the file. `begin` is the first byte of a row, before all places.
    pub fn cuts(&self, begin: u64, places: &[u64]) -> io::Result<Vec<Option<u64>>> {
        let places = &self.aligned(places)?[..];
        if self.automaton.states() > MOST_STATES {
            return self.serial(begin, places);
        }
        let gaps = self.gaps(places);
        let near = side_by_side(&gaps, |&(place, next)| self.near(place, next))?;
        let far: Vec<usize> = (0..places.len()).filter(|&index| near[index].is_none()).collect();
        let piece = |index: usize| match index.checked_sub(1) {
            None => Piece::FromRow(begin),
            Some(before) => near[before].map_or(Piece::FromPlace(places[before]), Piece::FromRow),
        };
        let pieces: Vec<(Piece, u64)> = far.iter().map(|&index| (piece(index), places[index])).collect();
        let ways = side_by_side(&pieces, |&(piece, place)| match piece {
            Piece::FromRow(from) => self.through(Lanes::of_one(START), from, place),
            Piece::FromPlace(from) => self.through(Lanes::of_all(self.automaton), from, place),
        })?;
        // From the left: the true state at a place, and so the next row end behind it.
        let mut known: Vec<((u64, u64), u32)> = Vec::with_capacity(far.len());
        for (way, ((piece, _), &index)) in std::iter::zip(&ways, std::iter::zip(&pieces, &far)) {
            let state = match (piece, known.last()) {
                (Piece::FromPlace(_), Some(&(_, before))) => way.behind(before),
                _ => way.behind(0),
            };
            known.push((gaps[index], state));
        }
        let found = side_by_side(&known, |&((place, next), state)| self.next_from(place, next, state))?;
        let mut cuts = near;
        std::iter::zip(far, found).for_each(|(index, cut)| cuts[index] = cut);
        Ok(or_those_behind(cuts))
    }

    /// The same, but only where it takes few bytes to tell: for text that is not cheap to read.
    pub fn near_cuts(&self, places: &[u64]) -> io::Result<Vec<Option<u64>>> {
        if self.automaton.states() > MOST_STATES {
            return Ok(vec![None; places.len()]);
        }
        let places = self.aligned(places)?;
        side_by_side(&places, |&place| match self.near(place, self.end) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            other => other,
        })
    }

    /// The places at which, or right behind which, a character begins.
    fn aligned(&self, places: &[u64]) -> io::Result<Vec<u64>> {
        if !self.encoding().is_utf16() {
            return Ok(places.to_vec());
        }
        // A mark has two bytes, so that units begin at even places.
        let aligned = |&place: &u64| {
            let place = place.next_multiple_of(2).min(self.end);
            let mut first = [0; 2];
            let mut text = self.text.reader(place, self.end.min(place + 2))?;
            let (mut length, mut count) = (0, 1);
            while count > 0 && length < 2 {
                count = text.read(&mut first[length..])?;
                length += count;
            }
            // The second half of a pair.
            let is_behind = first[0] == 0xED && first[1] >= 0xB0;
            Ok(if is_behind { (place + 2).min(self.end) } else { place })
        };
        places.iter().map(aligned).collect()
    }

    /// The places, each with the one behind it, or the end.
    fn gaps(&self, places: &[u64]) -> Vec<(u64, u64)> {
        let behind = places.iter().copied().skip(1).chain([self.end]);
        std::iter::zip(places.iter().copied(), behind).collect()
    }

    fn encoding(&self) -> Encoding {
        self.text.encoding()
    }

    /// A row end behind the first bytes after a place whatever stands before it, at `to` at the latest; none if the states do not
    /// meet, or too late.
    fn near(&self, place: u64, to: u64) -> io::Result<Option<u64>> {
        let mut lanes = Lanes::of_all(self.automaton);
        let mut window = window(NEAR_WINDOW_BYTES, place, to);
        let mut text = self.text.reader(place, to)?;
        let mut at = place;
        while at - place < NEAR_BYTES {
            let count = read(&mut text, &mut window, at < to)?;
            if count == 0 {
                break;
            }
            lanes.run(self.automaton, self.encoding(), &window[..count], at);
            if let Some(cut) = lanes.row_end {
                return Ok(Some(cut).filter(|cut| *cut < self.end));
            }
            at += self.encoding().source_bytes(&window[..count]);
        }
        Ok(None)
    }

    /// Where the bytes between two places lead.
    fn through(&self, mut lanes: Lanes, from: u64, to: u64) -> io::Result<Lanes> {
        let mut window = window(WINDOW_BYTES, from, to);
        let mut text = self.text.reader(from, to)?;
        let mut at = from;
        loop {
            let count = read(&mut text, &mut window, at < to)?;
            if count == 0 {
                return Ok(lanes);
            }
            lanes.run(self.automaton, self.encoding(), &window[..count], at);
            at += self.encoding().source_bytes(&window[..count]);
        }
    }

    /// Byte behind the next row end, from a place whose state is known; none if there is none up to `to`.
    fn next_from(&self, place: u64, to: u64, mut state: u32) -> io::Result<Option<u64>> {
        let mut window = window(WINDOW_BYTES, place, to);
        let mut text = self.text.reader(place, to)?;
        let mut at = place;
        loop {
            let count = read(&mut text, &mut window, at < to)?;
            if count == 0 {
                return Ok(None);
            }
            let (next, found) = self.automaton.next_row_end(state, &window[..count]);
            if let Some(found) = found {
                let cut = at + self.encoding().source_bytes(&window[..=found]);
                return Ok(Some(cut).filter(|cut| *cut < self.end));
            }
            (state, at) = (next, at + self.encoding().source_bytes(&window[..count]));
        }
    }

    /// All cuts by one reading from the front.
    fn serial(&self, begin: u64, places: &[u64]) -> io::Result<Vec<Option<u64>>> {
        let first = places.first().copied().unwrap_or(begin);
        let mut state = self.through(Lanes::of_one(START), begin, first)?.behind(0);
        let mut cuts = Vec::with_capacity(places.len());
        for (place, next) in self.gaps(places) {
            let lanes = self.through(Lanes::of_one(state), place, next)?;
            cuts.push(lanes.row_end.filter(|cut| *cut < self.end));
            state = lanes.behind(0);
        }
        Ok(or_those_behind(cuts))
    }
}

/// A row that goes on behind the next place ends where that one says.
fn or_those_behind(mut cuts: Vec<Option<u64>>) -> Vec<Option<u64>> {
    for index in (1..cuts.len()).rev() {
        cuts[index - 1] = cuts[index - 1].or(cuts[index]);
    }
    cuts
}

/// Room for the bytes between two places, and not more: places may be near each other, and clearing memory takes longer than reading
/// a few bytes.
fn window(most_bytes: usize, from: u64, to: u64) -> Vec<u8> {
    let length = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    vec![0; length.clamp(LEAST_WINDOW_BYTES, most_bytes)]
}

/// Reads some bytes, or none at the end, if there may be an end.
fn read(text: &mut dyn Read, window: &mut [u8], is_more: bool) -> io::Result<usize> {
    match text.read(window)? {
        // Whoever reads the slices says so better.
        0 if is_more => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was cut")),
        count => Ok(count),
    }
}

/// What `work` makes of each item, by as many threads as there are processors; the first error.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> io::Result<R> + Sync) -> io::Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<BTreeMap<usize, io::Result<R>>> = Mutex::default();
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            lock(&results).insert(index, result);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        // The scope itself waits for their work only, and not for their end.
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    std::mem::take(&mut *lock(&results)).into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicU64;

    use headrace_types::{Column, ColumnType, EscapeCodes, Layout, RowEnd, RowEndInFields, StrayQualifiers};
    use proptest::prelude::*;

    use super::*;
    use crate::slices::unreadable;

    fn layouts() -> Vec<(Layout, RowEnd)> {
        let columns = vec![Column::new("a", ColumnType::String, true), Column::new("b", ColumnType::String, true)];
        let plain = Layout { delimiter: ",".to_owned(), columns, ..Layout::default() };
        let quoted = Layout { qualifier: Some('"'), ..plain.clone() };
        let mut own = quoted.clone();
        own.columns[0].delimiter = Some("||".to_owned());
        vec![
            (plain.clone(), RowEnd::Lf),
            (plain.clone(), RowEnd::Exactly("\n\n,".to_owned())),
            (quoted.clone(), RowEnd::Either),
            (Layout { escape: Some('\\'), escape_codes: EscapeCodes::Mysql, ..quoted.clone() }, RowEnd::Lf),
            (Layout { escape: Some('\\'), comment: Some("#".to_owned()), ..plain.clone() }, RowEnd::Either),
            (Layout { row_end_in_fields: RowEndInFields::Data, ..plain }, RowEnd::Lf),
            (own, RowEnd::Exactly("\r\n".to_owned())),
            (Layout { stray_qualifiers: StrayQualifiers::Lenient, ..quoted.clone() }, RowEnd::Either),
            (Layout { comment: Some("#".to_owned()), blanks_around_qualifier: true, ..quoted }, RowEnd::Lf),
        ]
    }

    /// All row ends, by one scan from the front.
    fn row_ends(automaton: &Automaton, bytes: &[u8]) -> Vec<u64> {
        let (mut ends, mut at, mut state) = (vec![], 0, START);
        while let (next, Some(end)) = automaton.next_row_end(state, &bytes[at..]) {
            (state, at) = (next, at + end + 1);
            ends.push(at as u64);
        }
        ends
    }

    fn check(bytes: &[u8], layout: &Layout, row_end: &RowEnd, places: &[u64]) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        let automaton = Automaton::of_rows(layout, row_end).unwrap();
        let ends = row_ends(&automaton, bytes);
        let end = bytes.len() as u64;
        let text = FileText { file: &file, encoding: layout.encoding, stop: &Stop::default() };
        let cutter = Cutter::new(&text, &automaton, end);
        for cuts in [cutter.cuts(0, places).unwrap(), cutter.serial(0, places).unwrap()] {
            for (place, cut) in places.iter().zip(&cuts) {
                // None: perhaps there is one before the states have met.
                if let Some(cut) = cut {
                    assert!(cut > place && *cut < end && ends.contains(cut), "{place} {cut} {ends:?}");
                }
            }
        }
        // The serial ones are the very next row ends.
        for (place, cut) in places.iter().zip(cutter.serial(0, places).unwrap()) {
            assert_eq!(cut, ends.iter().copied().find(|found| found > place).filter(|found| *found < end));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn utf_16_is_cut_behind_the_same_rows(
            index in 0..layouts().len(),
            text in prop::collection::vec(prop::sample::select("\"\",,\n\n\r|\\#aß€😀😁".chars().collect::<Vec<_>>()), 1..600),
            mut places in prop::collection::vec(0_u64..1200, 1..6),
        ) {
            let (mut layout, row_end) = layouts()[index].clone();
            layout.encoding = Encoding::Utf16Le;
            // A delimiter of two units that differ little from those of other characters.
            if layout.columns[0].delimiter.is_some() {
                layout.columns[0].delimiter = Some("😁".to_owned());
            }
            let text: String = text.into_iter().collect();
            let bytes = layout.encoding.source_text(text.as_bytes());
            let end = bytes.len() as u64;
            places.iter_mut().for_each(|place| *place %= end);
            places.sort_unstable();
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let automaton = Automaton::of_rows(&layout, &row_end).unwrap();
            let ends = row_ends(&automaton, text.as_bytes());
            let ends: Vec<u64> =
                ends.into_iter().map(|at| layout.encoding.source_bytes(&text.as_bytes()[..at as usize])).collect();
            let file = FileText { file: &file, encoding: layout.encoding, stop: &Stop::default() };
            let cutter = Cutter::new(&file, &automaton, end);
            for cuts in [cutter.cuts(0, &places).unwrap(), cutter.serial(0, &cutter.aligned(&places).unwrap()).unwrap()] {
                for (place, cut) in places.iter().zip(&cuts) {
                    if let Some(cut) = cut {
                        prop_assert!(cut > place && *cut < end && ends.contains(cut), "{place} {cut} {ends:?}");
                    }
                }
            }
        }

        #[test]
        fn cuts_are_row_ends_of_one_pass_from_the_front(
            index in 0..layouts().len(),
            bytes in prop::collection::vec(prop::sample::select(b"\"\",,\n\n\r|\\#ab ".to_vec()), 1..900),
            mut places in prop::collection::vec(0_u64..900, 1..6),
        ) {
            let (layout, row_end) = &layouts()[index];
            places.iter_mut().for_each(|place| *place %= bytes.len() as u64);
            places.sort_unstable();
            check(&bytes, layout, row_end, &places);
        }
    }

    #[test]
    fn what_lies_behind_the_last_row_end_stays_without_a_cut() {
        let (layout, row_end) = &layouts()[2];
        // One field from the front to the end; the states meet at the front, and not from the middle on.
        let open = [&[b'"'; 83], b"\r\",,\",,\"\",,\",,,,\"\"\n\"\"\"\"".as_slice()].concat();
        check(&open, layout, row_end, &[0, 92, 92, 93, 95]);
    }

    #[test]
    fn states_that_never_meet_are_composed() {
        let (layout, row_end) = &layouts()[2];
        // No qualifier near any place; one opens at the very front, or not.
        let row = b"abcdefgh,ijklmnop\r\n";
        let rows = row.repeat((5 << 20) / row.len());
        let open = [b"\"".as_slice(), &rows, b"\"\r\n", &rows].concat();
        let places = [1 << 20, 2 << 20, 3 << 20, 4 << 20, 6 << 20, 7 << 20];
        check(&rows, layout, row_end, &places[..4]);
        check(&open, layout, row_end, &places);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&open, 0).unwrap();
        let automaton = Automaton::of_rows(layout, row_end).unwrap();
        let text = FileText { file: &file, encoding: layout.encoding, stop: &Stop::default() };
        let cuts = Cutter::new(&text, &automaton, open.len() as u64).cuts(0, &places).unwrap();
        let first = rows.len() as u64 + 4;
        assert_eq!(cuts[..4], [Some(first); 4], "all of it is one field");
        assert!(cuts[4].is_some_and(|cut| cut > 6 << 20) && cuts[5] > cuts[4]);
    }

    /// Text whose bytes are counted when they are read.
    struct Counted<'a> {
        text: FileText<'a>,
        bytes: AtomicU64,
    }

    impl Text for Counted<'_> {
        fn reader(&self, from: u64, to: u64) -> io::Result<Box<dyn Read + '_>> {
            Ok(Box::new(CountedReader { text: self.text.reader(from, to)?, bytes: &self.bytes }))
        }

        fn encoding(&self) -> Encoding {
            self.text.encoding()
        }
    }

    struct CountedReader<'a> {
        text: Box<dyn Read + 'a>,
        bytes: &'a AtomicU64,
    }

    impl Read for CountedReader<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.text.read(into)?;
            self.bytes.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
    }

    #[test]
    fn a_row_over_many_places_is_not_read_for_each_of_them() {
        let layouts = layouts();
        let (plain, quoted) = (&layouts[0].0, &layouts[2].0);
        let open = [b"1,\"abc\n".as_slice(), &b"2,x\n".repeat(1 << 19)].concat();
        let closed = [open.as_slice(), b"\"\n3,4\n5,6\n"].concat();
        let closed_end = open.len() as u64 + 2;
        let places: Vec<u64> = (1..64).map(|place| place * (32 << 10)).collect();
        for (bytes, layout, row_end, cut) in [
            (&closed, quoted, RowEnd::Either, Some(closed_end)),
            (&open, quoted, RowEnd::Either, None),
            (&open, plain, RowEnd::Exactly("\r\n".to_owned()), None),
        ] {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(bytes, 0).unwrap();
            let (automaton, end) = (Automaton::of_rows(layout, &row_end).unwrap(), bytes.len() as u64);
            let text = FileText { file: &file, encoding: layout.encoding, stop: &Stop::default() };
            let text = Counted { text, bytes: AtomicU64::new(0) };
            let cutter = Cutter::new(&text, &automaton, end);
            assert_eq!(cutter.cuts(0, &places).unwrap(), vec![cut; places.len()]);
            // To see whether states meet, to lead them through, to find the next row end.
            assert!(text.bytes.swap(0, Ordering::Relaxed) <= 3 * end);
            assert_eq!(cutter.serial(0, &places).unwrap(), vec![cut; places.len()]);
            assert!(text.bytes.load(Ordering::Relaxed) <= end);
        }
    }

    #[test]
    fn text_is_read_until_nobody_waits() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"a\0\n\0", 0).unwrap();
        let stop = Stop::default();
        stop.set();
        for encoding in [Encoding::default(), Encoding::Utf16Le] {
            let text = FileText { file: &file, encoding, stop: &stop };
            let error = text.reader(0, 4).unwrap().read(&mut [0; 4]).unwrap_err();
            assert_eq!(unreadable("file", error).kind, ErrorKind::Cancelled);
        }
    }
}
