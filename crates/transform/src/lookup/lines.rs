//! Keys that are spread: lines of 64 bytes, as many as the processor fetches at once.
//!
//! The hash of a key picks its line, without powers of two; the keys of a line that is full go on in the next ones.
//! Slots of a line are used from the first one on, and never emptied.

use std::hint::{black_box, select_unpredictable};

use super::BuildError;
use super::huge_pages;
use super::keys::TILE_ROWS;
use super::table::{Found, stored_row};

/// Most lines behind its own one in which a key may be. By chance it is 60 (narrow) and 102 (wide) in a simulation of
/// 30 M keys, and grows with the logarithm of their number; more means keys that were made to have hashes close
/// together.
const MOST_LINES_BEHIND: usize = 512;

/// Bytes of a line.
const LINE_BYTES: usize = 64;

/// Keys of 32 bits: the least significant ones of how far a key is behind the least one, or of its hash. 8 of them,
/// then what they find.
pub type NarrowLine = [u32; 16];

/// Keys of 64 bits: 5 of them, then what they find, a half word each, then marks.
pub type WideLine = [u64; 8];

/// Keys of up to 15 bytes, and their lengths: 3 of them, then what they find, then marks.
pub type ShortLine = [u128; 4];

/// A line.
pub trait Line: Copy + Send + Sync {
    /// What a line is made of.
    type Word: Copy + Default + Send + Sync;
    /// What is compared.
    type Key: Copy + PartialEq + Send + Sync;
    /// Places for keys.
    const SLOTS: usize;
    /// Keys per 1,000 slots.
    const FILL: u64;

    /// Lines made of words; those that are too few for one are left out.
    fn lines(words: &[Self::Word]) -> &[Self];
    /// The same.
    fn lines_mut(words: &mut [Self::Word]) -> &mut [Self];
    /// What the slot of that key finds, 0 if no slot has it. Of several slots it is a number that means nothing.
    fn find(&self, key: Self::Key) -> Found;
    /// The key of a slot that is used.
    fn key(&self, slot: usize) -> Self::Key;
    /// What the slot finds, 0 if it is not used.
    fn found(&self, slot: usize) -> Found;
    /// Uses a slot.
    fn put(&mut self, slot: usize, key: Self::Key, found: Found);
    /// Whether a key with this hash, whose own line this is and which is not in it, may be in a further one.
    fn may_go_on(&self, hash: u64) -> bool;
    /// Notes that one is.
    fn note_gone_on(&mut self, hash: u64);

    /// Whether keys may be in the next line that are not in this one.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.found(Self::SLOTS - 1) != 0
    }
}

impl Line for NarrowLine {
    type Word = u32;
    type Key = u32;
    const SLOTS: usize = 8;
    const FILL: u64 = 800;

    fn lines(words: &[u32]) -> &[Self] {
        words.as_chunks().0
    }

    fn lines_mut(words: &mut [u32]) -> &mut [Self] {
        words.as_chunks_mut().0
    }

    #[inline(always)]
    fn find(&self, key: u32) -> Found {
        // Of a plain choice the compiler makes branches, and one of them is guessed wrong for every key: half the
        // speed.
        (0..Self::SLOTS)
            .fold(0, |found, slot| found | select_unpredictable(self[slot] == key, self[slot + Self::SLOTS], 0))
    }

    fn key(&self, slot: usize) -> u32 {
        self[slot]
    }

    #[inline(always)]
    fn found(&self, slot: usize) -> Found {
        self[slot + Self::SLOTS]
    }

    fn put(&mut self, slot: usize, key: u32, found: Found) {
        self[slot] = key;
        self[slot + Self::SLOTS] = found;
    }

    #[inline(always)]
    fn may_go_on(&self, _hash: u64) -> bool {
        self.is_full()
    }

    fn note_gone_on(&mut self, _hash: u64) {}
}

/// The word of a wide line in which what its keys find begins.
const WIDE_FOUND: usize = 5;
/// The word whose upper half has the marks.
const WIDE_MARKS: usize = 7;

/// The mark of a key in its own line. By it nearly all keys that are in no line are known in the first one: else they
/// would look at 3.8 lines on average. These bits of the hash pick no line of tables with up to 2^32 of them.
#[inline(always)]
fn mark_bit(hash: u64) -> u32 {
    hash as u32 >> (u32::BITS - 5)
}

impl Line for WideLine {
    type Word = u64;
    type Key = i64;
    const SLOTS: usize = 5;
    const FILL: u64 = 820;

    fn lines(words: &[u64]) -> &[Self] {
        words.as_chunks().0
    }

    fn lines_mut(words: &mut [u64]) -> &mut [Self] {
        words.as_chunks_mut().0
    }

    #[inline(always)]
    fn find(&self, key: i64) -> Found {
        (0..Self::SLOTS)
            .fold(0, |found, slot| found | select_unpredictable(self[slot] == key as u64, self.found(slot), 0))
    }

    fn key(&self, slot: usize) -> i64 {
        self[slot] as i64
    }

    #[inline(always)]
    fn found(&self, slot: usize) -> Found {
        (self[WIDE_FOUND + slot / 2] >> (u32::BITS * (slot as u32 % 2))) as u32
    }

    fn put(&mut self, slot: usize, key: i64, found: Found) {
        self[slot] = key as u64;
        let shift = u32::BITS * (slot as u32 % 2);
        let word = &mut self[WIDE_FOUND + slot / 2];
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(found) << shift;
    }

    #[inline(always)]
    fn may_go_on(&self, hash: u64) -> bool {
        self[WIDE_MARKS] >> u32::BITS & 1 << mark_bit(hash) != 0
    }

    fn note_gone_on(&mut self, hash: u64) {
        self[WIDE_MARKS] |= 1 << (u32::BITS + mark_bit(hash));
    }
}

/// The word of a short line in which what its keys find is, and the marks.
const SHORT_FOUND: usize = 3;
/// The first bit of the marks there.
const SHORT_MARKS: u32 = 3 * u32::BITS;

impl Line for ShortLine {
    type Word = u128;
    type Key = u128;
    const SLOTS: usize = 3;
    const FILL: u64 = 800;

    fn lines(words: &[u128]) -> &[Self] {
        words.as_chunks().0
    }

    fn lines_mut(words: &mut [u128]) -> &mut [Self] {
        words.as_chunks_mut().0
    }

    #[inline(always)]
    fn find(&self, key: u128) -> Found {
        (0..Self::SLOTS).fold(0, |found, slot| found | select_unpredictable(self[slot] == key, self.found(slot), 0))
    }

    fn key(&self, slot: usize) -> u128 {
        self[slot]
    }

    #[inline(always)]
    fn found(&self, slot: usize) -> Found {
        (self[SHORT_FOUND] >> (u32::BITS * slot as u32)) as u32
    }

    fn put(&mut self, slot: usize, key: u128, found: Found) {
        self[slot] = key;
        let shift = u32::BITS * slot as u32;
        self[SHORT_FOUND] = self[SHORT_FOUND] & !(u128::from(u32::MAX) << shift) | u128::from(found) << shift;
    }

    #[inline(always)]
    fn may_go_on(&self, hash: u64) -> bool {
        self[SHORT_FOUND] >> SHORT_MARKS & 1 << mark_bit(hash) != 0
    }

    fn note_gone_on(&mut self, hash: u64) {
        self[SHORT_FOUND] |= 1 << (SHORT_MARKS + mark_bit(hash));
    }
}

/// A key on its way into a table.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<K> {
    pub hash: u64,
    pub key: K,
    pub row: u32,
}

/// What became of a key on its way into lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is there now.
    New,
    /// It was there already, and the row that counts is.
    Known,
    /// All lines from its own one to the last one are full of others.
    Beyond,
}

/// Lines, as many of them as partitions of keys or a multiple of that.
pub struct LineTable<L: Line> {
    words: Vec<L::Word>,
    /// Words before the first line, so that every line is one of the processor's.
    before: usize,
    count: usize,
}

impl<L: Line> LineTable<L> {
    /// Lines of one of so many partitions, for so many keys.
    pub fn lines_for(keys: u64, partitions: usize) -> usize {
        let slots = L::SLOTS as u64 * L::FILL * partitions as u64;
        (u128::from(keys) * 1000).div_ceil(slots.into()).max(1) as usize
    }

    /// Bytes of so many lines.
    pub fn bytes_for(lines: usize) -> u64 {
        (lines * LINE_BYTES) as u64
    }

    /// An empty table. Its memory is taken when it is first written.
    pub fn new(count: usize) -> Self {
        let line_words = LINE_BYTES / size_of::<L::Word>();
        let mut words = vec![L::Word::default(); (count + 1) * line_words - 1];
        huge_pages::prefer(&mut words);
        let before = words.as_ptr().align_offset(LINE_BYTES).min(line_words - 1);
        LineTable { words, before, count }
    }

    pub fn bytes(&self) -> u64 {
        Self::bytes_for(self.count)
    }

    fn lines(&self) -> &[L] {
        &L::lines(&self.words[self.before..])[..self.count]
    }

    pub fn lines_mut(&mut self) -> &mut [L] {
        &mut L::lines_mut(&mut self.words[self.before..])[..self.count]
    }

    /// The key that finds this row; looks at all keys.
    pub fn key(&self, row: u32) -> Option<L::Key> {
        let of_line = |line: &L| (0..L::SLOTS).find(|slot| line.found(*slot) == row + 1).map(|slot| line.key(slot));
        self.lines().iter().find_map(of_line)
    }

    /// The line that a key begins to look in.
    #[inline(always)]
    pub fn place(hash: u64, count: usize) -> usize {
        ((u128::from(hash) * count as u128) >> u64::BITS) as usize
    }

    /// Puts a key in that went beyond the last line of its partition.
    pub fn insert_beyond(
        &mut self,
        arrival: Arrival<L::Key>,
        is_same: &impl Fn(u32, u32) -> bool,
        settle: &impl Fn(u32, u32) -> u32,
    ) -> Result<Inserted, BuildError> {
        let place = Self::place(arrival.hash, self.count);
        let (front, behind) = self.lines_mut().split_at_mut(place);
        match insert(behind, arrival, is_same, settle)? {
            // The first line follows the last one. The key's own line is behind it, and has its mark already.
            Inserted::Beyond => match insert(front, arrival, is_same, settle)? {
                Inserted::Beyond => Err(BuildError::Crowded),
                inserted => Ok(inserted),
            },
            inserted => Ok(inserted),
        }
    }

    /// What keys find whose hashes are these, a tile of them. Where several slots have a key it is to be checked.
    #[inline(always)]
    pub fn find(&self, hashes: &[u64], keys: &[L::Key], found: &mut [Found]) {
        let lines = self.lines();
        let (mut places, mut waiting) = ([0_u32; TILE_ROWS], [0_u8; TILE_ROWS]);
        let places = &mut places[..hashes.len()];
        // Three loops, so that the processor waits for the memory of many lines at the same time: a loop that compares
        // as well has so many instructions that it sees fewer rows ahead.
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = Self::place(*hash, lines.len()) as u32;
        }
        // What is loaded is not needed yet, which the compiler must not know.
        let touch = |place: &u32| lines[*place as usize].found(L::SLOTS - 1);
        black_box(places.iter().fold(0, |all, place| all | touch(place)));
        let mut count = 0;
        for (row, place) in places.iter().enumerate() {
            let line = &lines[*place as usize];
            found[row] = line.find(keys[row]);
            waiting[count] = row as u8;
            count += usize::from((found[row] == 0) & line.may_go_on(hashes[row]));
        }
        while count > 0 {
            let all = waiting[..count].iter().fold(0, |all, row| {
                let place = &mut places[usize::from(*row)];
                *place = if *place as usize + 1 == lines.len() { 0 } else { *place + 1 };
                all | touch(place)
            });
            black_box(all);
            let rows = std::mem::take(&mut count);
            for index in 0..rows {
                let row = usize::from(waiting[index]);
                let line = &lines[places[row] as usize];
                found[row] = line.find(keys[row]);
                waiting[count] = row as u8;
                count += usize::from((found[row] == 0) & line.is_full());
            }
        }
    }

    /// The row that a key finds among all slots with equal keys; 0 if none `is_it`.
    pub fn search(&self, hash: u64, key: L::Key, is_it: impl Fn(u32) -> bool) -> Found {
        let lines = self.lines();
        let (front, behind) = lines.split_at(Self::place(hash, lines.len()));
        for line in behind.iter().chain(front) {
            for slot in 0..L::SLOTS {
                let found = line.found(slot);
                if found == 0 || (line.key(slot) == key && is_it(stored_row(found))) {
                    return found;
                }
            }
        }
        0
    }
}

/// Puts a key into the first line that has room, from its own one on, unless it is there. `is_same` compares the keys
/// of two rows whose short keys are equal, `settle` says which of two rows with one key counts.
///
/// # Errors
/// `Crowded` if that line is too far away.
pub fn insert<L: Line>(
    lines: &mut [L],
    arrival: Arrival<L::Key>,
    is_same: &impl Fn(u32, u32) -> bool,
    settle: &impl Fn(u32, u32) -> u32,
) -> Result<Inserted, BuildError> {
    let Arrival { hash, key, row } = arrival;
    for place in 0..lines.len() {
        let line = &mut lines[place];
        for slot in 0..L::SLOTS {
            let found = line.found(slot);
            if found == 0 {
                line.put(slot, key, row + 1);
                if place > 0 {
                    lines[0].note_gone_on(hash);
                }
                return Ok(Inserted::New);
            }
            let present = stored_row(found);
            if line.key(slot) == key && is_same(present, row) {
                line.put(slot, key, settle(present, row) + 1);
                return Ok(Inserted::Known);
            }
        }
        if place == MOST_LINES_BEHIND {
            return Err(BuildError::Crowded);
        }
    }
    if let Some(own) = lines.first_mut() {
        own.note_gone_on(hash);
    }
    Ok(Inserted::Beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival<K>(hash: u64, key: K, row: u32) -> Arrival<K> {
        Arrival { hash, key, row }
    }

    fn same(_: u32, _: u32) -> bool {
        true
    }

    /// A hash whose line is this one of so many.
    fn hash_in(line: usize, count: usize) -> u64 {
        let hash = (line as u64 * 2 + 1).wrapping_mul(u64::MAX / (2 * count as u64));
        assert_eq!(LineTable::<WideLine>::place(hash, count), line);
        hash
    }

    /// Keys that go on behind their line, and around the end, are found; others are not.
    fn go_on<L: Line>(key: impl Fn(u32) -> L::Key) {
        let count = 10;
        let mut table = LineTable::<L>::new(count);
        assert_eq!(table.lines_mut().as_ptr() as usize % LINE_BYTES, 0);
        // Two lines and a half, from the last but one on.
        let (hash, keys) = (hash_in(8, count), L::SLOTS as u32 * 5 / 2);
        for row in 0..keys {
            assert_eq!(table.insert_beyond(arrival(hash, key(row), row), &same, &|_, _| 99), Ok(Inserted::New));
        }
        // A key of its own line, which is full of others, and the same key again.
        let (other, own) = (hash_in(9, count), key(keys));
        assert_eq!(table.insert_beyond(arrival(other, own, 70), &same, &|_, _| 99), Ok(Inserted::New));
        let settle = |one, other| {
            assert_eq!((one, other), (70, 71));
            71
        };
        assert_eq!(table.insert_beyond(arrival(other, own, 71), &same, &settle), Ok(Inserted::Known));
        let mut hashes = vec![hash; keys as usize];
        hashes.extend([other, hash, hash_in(3, count), hash_in(0, count)]);
        let keys: Vec<_> = (0..=keys).chain([50, 51, 52]).map(key).collect();
        let mut found = vec![9; keys.len()];
        table.find(&hashes, &keys, &mut found);
        let (absent, present) = (&found[keys.len() - 3..], &found[..keys.len() - 3]);
        assert_eq!((absent, present.last()), (&[0, 0, 0][..], Some(&72)));
        assert!(present.iter().take(present.len() - 1).zip(1..).all(|(found, row)| *found == row));
        for (hash, (key, found)) in hashes.iter().zip(keys.iter().zip(&found)) {
            assert_eq!(table.search(*hash, *key, |_| true), *found);
            assert_eq!(table.search(*hash, *key, |_| false), 0);
        }
        assert!(table.key(71).is_some_and(|found| found == own));
        assert!(table.key(70).is_none());
    }

    #[test]
    fn keys_go_on_in_the_next_lines() {
        go_on::<NarrowLine>(|row| row);
        go_on::<NarrowLine>(|row| u32::MAX - row);
        go_on::<WideLine>(i64::from);
        go_on::<WideLine>(|row| i64::MIN + i64::from(row));
        go_on::<ShortLine>(|row| u128::from(row) << 100 | u128::from(row));
        go_on::<ShortLine>(|row| u128::MAX - u128::from(row));
    }

    #[test]
    fn one_mark_or_another_is_of_a_key_that_went_on() {
        fn marks<L: Line>(mut line: L) {
            for hash in (0..32).map(|bit| bit << 27) {
                assert!(!line.may_go_on(hash));
                line.note_gone_on(hash);
                assert!(line.may_go_on(hash));
                assert_eq!(line.found(L::SLOTS - 1), u32::MAX);
            }
        }
        let mut wide = [u64::MAX; 8];
        wide[WIDE_MARKS] &= u64::from(u32::MAX);
        marks::<WideLine>(wide);
        let mut short = [u128::MAX; 4];
        short[SHORT_FOUND] &= u128::MAX >> u32::BITS;
        marks::<ShortLine>(short);
    }

    #[test]
    fn hashes_that_are_close_together_are_an_error() {
        let count = 1000;
        let mut table = LineTable::<WideLine>::new(count);
        let most = ((MOST_LINES_BEHIND + 1) * WideLine::SLOTS) as u32;
        let mut put = |row: u32| table.insert_beyond(arrival(hash_in(700, count), row.into(), row), &same, &|_, _| 0);
        // Around the end the count begins anew.
        let room = (MOST_LINES_BEHIND + 1 + 300) as u32 * WideLine::SLOTS as u32;
        assert!((0..room).all(|row| put(row) == Ok(Inserted::New)));
        assert_eq!(put(room), Err(BuildError::Crowded));
        let mut lines = vec![[0; 8]; count];
        let mut put = |row: u32| insert::<WideLine>(&mut lines, arrival(0, row.into(), row), &same, &|_, _| 0);
        assert!((0..most).all(|row| put(row) == Ok(Inserted::New)));
        assert_eq!(put(most), Err(BuildError::Crowded));
    }

    #[test]
    fn lines_are_as_many_as_their_fill_says() {
        assert_eq!(LineTable::<NarrowLine>::lines_for(0, 256), 1);
        assert_eq!(LineTable::<NarrowLine>::lines_for(1638, 256), 1);
        assert_eq!(LineTable::<NarrowLine>::lines_for(1639, 256), 2);
        assert_eq!(LineTable::<WideLine>::lines_for(u32::MAX.into(), 256), 4_092_004);
    }
}
