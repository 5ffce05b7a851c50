//! A stream: takes slices from the queue, reads them in blocks, parses the blocks, writes the batches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Guess, Parsed, Parser, Reject, RowScanner};
use headrace_types::{CoreError, Encoding, ErrorKind, Location, Rule};

use crate::flow::{FillingLargeRow, Shared};
use crate::last_row_end::{self, FOUND_BYTES};
use crate::meter::{Doing, SliceSize, StreamMeter, Work};
use crate::origins::origins;
use crate::queue::Next;
use crate::rejects::{LongRow, SliceRejects};
use crate::report::{Dialect, SliceReport};
use crate::sink::{Origin, Placed, Writer};
use crate::source::{ByteSource, Footer, Hashing, OpenLine, Opened, open};
use crate::spec::{CommittedSlice, Compression, FileSpec, Margin, SliceSpec};

/// Memory of a block beyond its text: padding on both sides, and room for the row end that a last line may lack.
pub const BLOCK_OVERHEAD_BYTES: usize = 2 * PADDING_BYTES + 64;
/// A block filled to less than this part is copied to memory of its own size, so that small files do not pin big blocks.
const SMALL_PART: usize = 4;
/// Longest mark in front of the first row.
const UTF8_MARK_BYTES: u64 = 3;

/// Runs one stream until the queue is empty or the flow was stopped.
pub fn run(shared: &Arc<Shared>, meter: &StreamMeter) -> Result<(), CoreError> {
    let layout = &shared.spec.layout;
    let wanted = shared.sink.wanted_columns().unwrap_or_else(|| (0..layout.all_columns().count()).collect());
    meter.turn_to(Doing::Read);
    let is_counted = shared.row_counts.count(&shared.spec, &shared.outcome)?;
    meter.turn_to(Doing::Parse);
    let mut stream = Stream {
        shared,
        meter,
        parser: Parser::of_columns(layout, &wanted)?,
        fields: None,
        wanted,
        writer: shared.sink.writer(),
        carry: Vec::new(),
        places: Vec::new(),
    };
    if is_counted && stream.run_groups()? {
        meter.turn_to(Doing::Write);
        stream.writer.finish(meter)?;
    }
    // The writer may need a while to give up what it left open.
    meter.end();
    Ok(())
}

struct Stream<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    /// A parser of the present file, and the order of its fields.
    parser: Parser,
    fields: Option<Vec<Option<usize>>>,
    /// Columns of the layout that batches have.
    wanted: Vec<usize>,
    writer: Box<dyn Writer>,
    /// Bytes behind the last row end of the block before.
    carry: Vec<u8>,
    /// Scratch, reused for every batch.
    places: Vec<u32>,
}

/// A slice on its way.
struct Progress<'a> {
    slice: &'a SliceSpec,
    /// Its file, with all that is known of it now.
    file: FileSpec,
    /// Set when an earlier attempt has committed the rows: only the rejects are wanted.
    committed: Option<&'a CommittedSlice>,
    source: Box<dyn ByteSource>,
    /// Place in the file of the first byte that is not parsed yet.
    at_byte: u64,
    /// Bytes of the file that were counted for progress.
    taken_bytes: u64,
    rejects: Option<SliceRejects>,
    account: SliceReport,
}

/// Text in memory. The memory is given back before the guard says that the large-row memory is free.
struct Held<'a> {
    memory: Memory,
    length: usize,
    _large: Option<FillingLargeRow<'a>>,
}

/// What the source had to give.
enum Filled<'a> {
    /// Text that holds at least one row end, or ends the slice.
    Text { held: Held<'a>, ended: bool },
    /// No row end in `max_row` bytes; the scanner stands behind them.
    LongRow(Held<'a>, RowScanner),
    /// Nothing more, or the flow was stopped.
    Nothing,
}

impl<'a> Stream<'a> {
    /// Takes slices until there are no more. False when the flow was stopped.
    fn run_groups(&mut self) -> Result<bool, CoreError> {
        let shared = self.shared;
        loop {
            self.meter.turn_to(Doing::WaitSlice);
            match shared.queue.next(|| shared.outcome.stopped()) {
                Next::Group(group) => {
                    for slice in &group {
                        if !self.run_slice(slice)? {
                            return Ok(false);
                        }
                        self.meter.end_slice();
                    }
                    shared.queue.group_ended();
                }
                Next::EndEpoch => {
                    self.meter.turn_to(Doing::Write);
                    if !self.writer.end_epoch(self.meter)? {
                        return Ok(false);
                    }
                    shared.queue.epoch_ended();
                }
                Next::Nothing => return Ok(!shared.outcome.stopped()),
            }
        }
    }

    /// False when the flow was stopped.
    fn run_slice(&mut self, slice: &SliceSpec) -> Result<bool, CoreError> {
        let committed = self.shared.spec.source.committed.get(&slice.number);
        self.meter.begin_slice(slice, SliceSize::of(&self.shared.spec.source, slice));
        self.meter.turn_to(Doing::Write);
        if committed.is_none() && !self.writer.begin_slice(slice, self.meter)? {
            return Ok(false);
        }
        self.carry.clear();
        self.meter.turn_to(Doing::Read);
        let hashing = Hashing::new(self.shared.sink.hashes_texts());
        let Opened { source, file, hashing } = open(&self.shared.spec, slice, &self.shared.outcome, hashing)?;
        let is_other = self.parser.encoding() != file.encoding_in(&self.shared.spec.layout);
        if is_other || self.fields != file.columns {
            self.parser = file.parser(&self.shared.spec.layout, &self.wanted)?;
            self.fields.clone_from(&file.columns);
        }
        let (head, foot) = (file.head_of(slice), file.foot_of(slice));
        self.parser.begin_slice(&file.row_end, head.lines)?;
        let path = file.origin.as_ref().map_or(&file.path, |origin| &origin.path);
        let lines_before = self.shared.row_counts.lines_before(slice.number);
        self.parser.place_slice(slice.number, path, lines_before, origins(&file, slice)?);
        let at_byte = file.text_begin(slice);
        let dialect = Dialect::of_stream(&file);
        let mut progress = Progress {
            slice,
            file,
            committed,
            source,
            at_byte,
            taken_bytes: 0,
            rejects: None,
            account: SliceReport {
                stream: Some(self.meter.number()),
                committed: committed.is_some(),
                dialect,
                ..SliceReport::new(slice)
            },
        };
        self.skip_margin(&mut progress, head);
        let read = self.read_slice(&mut progress);
        self.shared.rejects.end_slice(slice.number, progress.rejects.take())?;
        if !read? {
            return Ok(false);
        }
        self.meter.turn_to(Doing::Read);
        self.skip_margin(&mut progress, foot);
        self.skip_footer(&mut progress)?;
        hashing.add_foot(&progress.file, slice)?;
        progress.account.text_hash = hashing.text_hash();
        self.meter.turn_to(Doing::Write);
        match committed {
            Some(known) => check_committed(&progress.account, &progress.file.path, slice, known)?,
            None => self.writer.end_slice(&progress.account)?,
        }
        self.shared.end_slice(progress.account);
        Ok(true)
    }

    /// Counts the rows that were held back.
    fn skip_footer(&mut self, progress: &mut Progress<'_>) -> Result<(), CoreError> {
        let Footer { margin, open } = progress.source.footer();
        if let Some(OpenLine { before, text }) = open.filter(|_| progress.file.needs_last_row_end) {
            let found = headrace_parse::shown(self.parser.encoding(), &text);
            let row = self.parser.next_line() + before.lines + 1;
            return Err(no_last_row_end(progress, before.bytes, row, &found));
        }
        self.skip_margin(progress, margin);
        Ok(())
    }

    /// Reads, parses and writes the rows of a slice. False when the flow was stopped.
    fn read_slice(&mut self, progress: &mut Progress<'_>) -> Result<bool, CoreError> {
        let (mut ended, mut stopped) = (false, false);
        while !ended && !stopped {
            ended = match self.fill(progress.source.as_mut())? {
                Filled::Text { held, ended } => {
                    stopped = !self.run_block(progress, held, ended)?;
                    ended
                }
                Filled::LongRow(held, scanner) => self.skip_long_row(progress, held, scanner)?,
                Filled::Nothing => true,
            };
            self.count_taken(progress);
            stopped |= self.shared.outcome.stopped();
        }
        Ok(!stopped)
    }

    /// Counts lines that are not read.
    fn skip_margin(&mut self, progress: &mut Progress<'_>, margin: Margin) {
        progress.account.bytes += margin.bytes;
        progress.account.lines += margin.lines;
        progress.account.skipped += margin.lines;
        self.meter.add_skipped(margin.bytes);
        self.shared.counters.add(margin.bytes, 0, 0);
        if progress.file.compression == Compression::None && progress.file.stream.is_none() {
            self.shared.counters.add_taken(margin.bytes);
        }
    }

    /// Progress is counted in bytes of the file.
    fn count_taken(&self, progress: &mut Progress<'_>) {
        let taken_bytes = progress.source.taken_bytes();
        self.shared.counters.add_taken(taken_bytes.saturating_sub(progress.taken_bytes));
        progress.taken_bytes = taken_bytes;
        self.meter.slice_is_at(progress.account.bytes, taken_bytes);
    }

    /// The next text: carry and new bytes in a block, or in the flow's large-row memory when a row needs it.
    fn fill(&mut self, source: &mut dyn ByteSource) -> Result<Filled<'a>, CoreError> {
        self.meter.turn_to(Doing::WaitBlock);
        let shared = self.shared;
        let memory_spec = &shared.spec.memory;
        let mut room = memory_spec.block_bytes;
        // Behind a large row a large memory may hold the front of another one, longer than a block.
        let acquired = if self.carry.len() > room {
            room = self.carry.len();
            shared.large_row(room + BLOCK_OVERHEAD_BYTES).map(|(guard, memory)| (Some(guard), memory))
        } else {
            shared.blocks.acquire(&shared.outcome, || shared.sink.starved()).map(|memory| (None, memory))
        };
        let Some((mut large, mut memory)) = acquired else { return Ok(Filled::Nothing) };
        self.meter.turn_to(Doing::Read);
        let mut length = self.carry.len();
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + length].copy_from_slice(&self.carry);
        self.clear_carry();
        let max_row_bytes = memory_spec.max_row_bytes;
        // From the front, where a row starts: the first row end is all there is to know.
        let mut scanner = self.parser.scanner();
        let mut searched = 0;
        let filled = loop {
            let (more, ended) =
                read_full(source, &mut memory.bytes_mut()[PADDING_BYTES + length..PADDING_BYTES + room])?;
            let row_end =
                scanner.next_row_end(&memory.bytes()[PADDING_BYTES + searched..PADDING_BYTES + length + more]);
            self.meter.add_read(more as u64);
            length += more;
            searched = length;
            if ended && length == 0 {
                break Filled::Nothing;
            } else if ended || row_end.is_some() {
                break Filled::Text { held: Held { memory, length, _large: large }, ended };
            } else if length >= max_row_bytes {
                break Filled::LongRow(Held { memory, length, _large: large }, scanner);
            }
            room = (2 * room).min(max_row_bytes);
            if large.is_none() {
                // Never waits for one memory while it holds another.
                self.carry.extend_from_slice(&memory.bytes()[PADDING_BYTES..PADDING_BYTES + length]);
                drop(memory);
                let _waiting = self.meter.pause(Doing::WaitBlock);
                let Some((guard, taken)) = shared.large_row(room + BLOCK_OVERHEAD_BYTES) else {
                    return Ok(Filled::Nothing);
                };
                (large, memory) = (Some(guard), taken);
                memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + length].copy_from_slice(&self.carry);
                self.clear_carry();
            } else {
                memory.extend(room + BLOCK_OVERHEAD_BYTES);
            }
        };
        Ok(filled)
    }

    /// Empties the carry; memory that it needed for the front of a large row is given back.
    fn clear_carry(&mut self) {
        self.carry.clear();
        self.carry.shrink_to(2 * self.shared.spec.memory.block_bytes);
    }

    /// Parses a block and writes its batch. False when the flow was stopped.
    fn run_block(&mut self, progress: &mut Progress<'_>, held: Held<'_>, ended: bool) -> Result<bool, CoreError> {
        let Held { mut memory, length: real_length, _large } = held;
        self.meter.turn_to(Doing::Parse);
        let mut length = real_length;
        if ended {
            self.check_last_row_end(progress, &memory.bytes()[PADDING_BYTES..PADDING_BYTES + length])?;
        }
        let last = memory.bytes()[PADDING_BYTES + length - 1];
        if ended && last != b'\n' && self.parser.needs_row_end() {
            memory.bytes_mut()[PADDING_BYTES + length] = b'\n';
            length += 1;
        }
        if length < self.shared.spec.memory.block_bytes / SMALL_PART {
            let used = PADDING_BYTES + length;
            let mut own = Memory::new(used + PADDING_BYTES);
            own.bytes_mut()[..used].copy_from_slice(&memory.bytes()[..used]);
            memory = own;
        }
        let buffer = memory.freeze();
        let (mut from, mut more) = (0, true);
        while more {
            let block = Block { buffer: &buffer, from, length, real_length, first_byte: progress.at_byte, ended };
            let (consumed, is_more) = match self.run_batch(progress, block)? {
                Some(parsed) => parsed,
                None => return Ok(false),
            };
            from += consumed;
            more = is_more && from < length;
        }
        self.carry.extend_from_slice(&buffer[PADDING_BYTES + from..PADDING_BYTES + length]);
        Ok(true)
    }

    /// Fails for a last row of a file without a row end, where it must have one. `text`: the last of the slice, from the start of a row.
    fn check_last_row_end(&self, progress: &Progress<'_>, text: &[u8]) -> Result<(), CoreError> {
        let file = &self.shared.spec.source.files[progress.slice.file];
        if !file.needs_last_row_end || !progress.slice.ends(file) {
            return Ok(());
        }
        let mut scanner = self.parser.scanner();
        let (mut at, mut line) = (0, self.parser.next_line() + 1);
        while let Some(end) = scanner.next_row_end(&text[at..]) {
            (at, line) = (at + end + 1, line + 1);
        }
        let behind = self.parser.encoding().source_bytes(&text[..at]);
        if at == text.len() {
            Ok(())
        } else {
            let found = headrace_parse::shown(self.parser.encoding(), &text[at..]);
            Err(no_last_row_end(progress, behind, line, &found))
        }
    }

    /// Parses rows of a block and writes their batch: the bytes consumed, and whether there are more rows. `None` when the flow was
    /// stopped.
    fn run_batch(&mut self, progress: &mut Progress<'_>, block: Block<'_>) -> Result<Option<(usize, bool)>, CoreError> {
        let shared = self.shared;
        let (at_byte, slice, file, rejects) = (progress.at_byte, progress.slice, &progress.file, &mut progress.rejects);
        let slab = |bytes| shared.slabs.take(bytes);
        let first_line = self.parser.next_line();
        let mut parsed = self.parser.parse_or_gather(block, slab, self.writer.facts())?;
        if parsed.consumed == 0 && block.from > 0 && !block.ended {
            // The batch before had as many rows as it could have, and the block no more whole ones.
            return Ok(Some((0, false)));
        }
        if parsed.consumed == 0 && !block.ended {
            // It would be asked the same question for ever.
            return Err(CoreError::new(ErrorKind::Internal, "the parser does not see the row end of a block").at(
                Location { file: shared.spec.source.files[slice.file].path.clone(), row: None, byte: Some(at_byte) },
            ));
        }
        let placed = parsed.batch.take().map(|batch| self.place(batch, file)).transpose()?;
        let (placed, refused) = placed.unwrap_or_default();
        let ignored = if placed.is_some() { self.parser.ignored() } else { BTreeMap::new() };
        self.parser
            .reject_rows(block.buffer, &mut |reject| shared.reject(slice, &of_layout(reject, file), None, rejects))?;
        let Parsed { consumed, more, lines, skipped, line_ends, .. } = parsed;
        let real_length = consumed.min(block.real_length - block.from);
        let start_of_text = PADDING_BYTES + block.from;
        let real = self.parser.encoding().source_bytes(&block.buffer[start_of_text..start_of_text + real_length]);
        let rows = parsed.rows();
        let rejected = parsed.rejected + refused;
        let out = placed.as_ref().map_or(0, |placed| placed.batch.num_rows() as u64);
        progress.at_byte += real;
        let account = &mut progress.account;
        account.bytes += real;
        account.lines += lines;
        account.skipped += skipped;
        account.lf_lines += line_ends.lf;
        account.crlf_lines += line_ends.crlf;
        account.is_utf8 = match self.parser.guess() {
            Guess::Either => None,
            guess => Some(guess == Guess::Utf8),
        };
        for (column, replaced) in self.wanted.iter().zip(&parsed.replaced).filter(|(_, replaced)| **replaced > 0) {
            *account.replaced.entry(*column).or_default() += replaced;
        }
        for (field, (nulls, cut)) in ignored {
            let counts = account.ignored.entry(progress.file.column(field).unwrap_or(field)).or_default();
            counts.nulls += nulls;
            counts.cut += cut;
            account.values_ignored += nulls + cut;
        }
        account.rows += rows;
        account.rejected += rejected;
        self.meter.add(Work { rows, bytes: real, out, is_placed: shared.router.is_some() });
        self.shared.counters.add(real, rows, rejected);
        let Some(placed) = placed else { return Ok(Some((consumed, more))) };
        progress.account.out += out;
        if progress.committed.is_some() {
            return Ok(Some((consumed, more)));
        }
        let origin = Origin { slice: slice.number, first_line, at_byte, bytes: real };
        self.meter.turn_to(Doing::Write);
        if !self.writer.write(placed, origin, self.meter)? {
            return Ok(None);
        }
        self.meter.turn_to(Doing::Parse);
        self.shared.counters.rows_out.fetch_add(out, Ordering::Relaxed);
        Ok(Some((consumed, more)))
    }

    /// Where the rows of a batch go. Those that go nowhere become rejects of the parser's; their number.
    fn place(&mut self, batch: RecordBatch, file: &FileSpec) -> Result<(Option<Placed>, u64), CoreError> {
        let Some(router) = &self.shared.router else { return Ok((Some(Placed::whole(batch, 0)), 0)) };
        let _placing = self.meter.pause(Doing::Transform);
        let (placed, outside) = router.route(batch, self.shared.sink.by_place(), &mut self.places)?;
        if !outside.is_empty() {
            self.parser.refuse(&outside, file.field(router.column()), Rule::Partition);
        }
        Ok((placed, outside.len() as u64))
    }

    /// Rejects a row without holding it: reads on to its end. True when the slice ended with it.
    fn skip_long_row(
        &mut self,
        progress: &mut Progress<'_>,
        held: Held<'_>,
        mut scanner: RowScanner,
    ) -> Result<bool, CoreError> {
        let Held { memory, length, _large } = held;
        let encoding = self.parser.encoding();
        let text = &memory.bytes()[PADDING_BYTES..PADDING_BYTES + length];
        let reject = Reject {
            line: self.parser.next_line(),
            row_byte: progress.at_byte,
            byte: progress.at_byte,
            column: None,
            rule: Rule::RowTooLong,
            value: headrace_parse::shown(encoding, &text[..FOUND_BYTES.min(length)]),
            note: None,
            row: Vec::new(),
            row_end: self.parser.own_row_end(),
            also: Vec::new(),
            fatal: None,
        };
        let (shared, slice) = (self.shared, progress.slice.number);
        let mut parts = SourceParts::new(encoding);
        let mut row = LongRow::default();
        let rejects = &mut progress.rejects;
        parts.push(text, false, &mut |part| shared.keep_part(slice, part, &mut row, rejects))?;
        // The end of the row may be far away: others may need the large-row memory meanwhile.
        drop((memory, _large));
        let (mut ended, mut was_found) = (false, false);
        // At most a block at once: what stands behind the row end must fit the next block.
        let mut window = vec![0; self.shared.spec.memory.block_bytes];
        while !ended && !self.shared.outcome.stopped() {
            self.meter.turn_to(Doing::Read);
            let (count, at_end) = read_full(progress.source.as_mut(), &mut window)?;
            self.meter.add_read(count as u64);
            self.meter.turn_to(Doing::Parse);
            ended = at_end;
            let found = scanner.next_row_end(&window[..count]);
            let part = &window[..found.map_or(count, |at| at + 1)];
            let rejects = &mut progress.rejects;
            parts.push(part, found.is_some() || ended, &mut |part| shared.keep_part(slice, part, &mut row, rejects))?;
            if let Some(at) = found {
                was_found = true;
                self.carry.extend_from_slice(&window[at + 1..count]);
                break;
            }
        }
        let skipped = row.bytes;
        let file = &self.shared.spec.source.files[progress.slice.file];
        if ended && self.carry.is_empty() && !was_found && file.needs_last_row_end && progress.slice.ends(file) {
            return Err(no_last_row_end(progress, 0, self.parser.next_line() + 1, &reject.value));
        }
        self.parser.skip_line();
        progress.at_byte += skipped;
        progress.account.bytes += skipped;
        progress.account.lines += 1;
        progress.account.rows += 1;
        progress.account.rejected += 1;
        self.shared.counters.add(skipped, 1, 1);
        self.shared.reject(progress.slice, &reject, Some(&row), &mut progress.rejects)?;
        self.meter.add(Work { rows: 1, bytes: skipped, ..Work::default() });
        Ok(ended && self.carry.is_empty())
    }
}

/// The reject of a file's parser with the columns of the flow's layout.
fn of_layout(mut reject: Reject, file: &FileSpec) -> Reject {
    if file.columns.is_none() {
        return reject;
    }
    // Nobody wants the fields that are of no column, so nothing is wrong with them.
    let column = |field: usize| file.column(field).unwrap_or(field);
    reject.column = reject.column.and_then(|field| file.column(field));
    reject.also.iter_mut().for_each(|other| other.column = column(other.column));
    reject.also.sort_unstable_by_key(|other| other.column);
    if let Some(bad) = &mut reject.fatal {
        bad.column = column(bad.column);
    }
    reject
}

/// A text that comes in parts, as the bytes of its file.
struct SourceParts {
    encoding: Encoding,
    /// The front of a character whose rest is in the next part.
    waiting: Vec<u8>,
}

impl SourceParts {
    fn new(encoding: Encoding) -> Self {
        SourceParts { encoding, waiting: Vec::new() }
    }

    fn push(
        &mut self,
        part: &[u8],
        is_last: bool,
        take: &mut dyn FnMut(&[u8]) -> Result<(), CoreError>,
    ) -> Result<(), CoreError> {
        if !self.encoding.is_utf16() {
            return take(part);
        }
        // A character ends where the next one begins.
        let begins = |byte: &u8| byte & 0xC0 != 0x80;
        let end = if is_last { part.len() } else { part.iter().rposition(begins).unwrap_or(0) };
        self.waiting.extend_from_slice(&part[..end]);
        let source = self.encoding.source_text(&self.waiting);
        self.waiting.clear();
        self.waiting.extend_from_slice(&part[end..]);
        take(&source)
    }
}

/// The error of a last row that stands `behind` the place of `progress`.
fn no_last_row_end(progress: &Progress<'_>, behind: u64, row: u64, found: &[u8]) -> CoreError {
    // The last slice of a file that is cut has rows in front of it that nobody has counted yet.
    let row = (progress.slice.text().begin <= UTF8_MARK_BYTES).then_some(row);
    last_row_end::no_last_row_end(&progress.file, progress.at_byte + behind, row, found)
}

/// A slice has the same rows whenever it is read: its file is unchanged. Unless another version of Headrace reads it.
fn check_committed(
    account: &SliceReport,
    path: &str,
    slice: &SliceSpec,
    known: &CommittedSlice,
) -> Result<(), CoreError> {
    let expected = SliceReport::known(slice, known);
    let counts = |account: &SliceReport| {
        let SliceReport { out, rejected, skipped, values_ignored, .. } = account;
        format!("{out} rows, {rejected} rejected, {skipped} lines skipped, {values_ignored} values ignored")
    };
    if let Some((found, expected)) = account.text_hash.zip(expected.text_hash).filter(|(now, then)| now != then) {
        let what = format!("slice {} has another text than when an earlier attempt committed it", slice.number);
        return Err(CoreError::new(ErrorKind::FileChanged, what)
            .at_file(path)
            .found(format!("text with the hash {found}"))
            .expected(format!("text with the hash {expected}"))
            .hint("The file was changed although its size and time are the same. Start a new run: `headrace run`."));
    }
    let (found, expected) = (counts(account), counts(&expected));
    if found == expected {
        return Ok(());
    }
    let what = format!("slice {} has other rows than when an earlier attempt committed it", slice.number);
    Err(CoreError::new(ErrorKind::Internal, what)
        .found(found)
        .expected(expected)
        .hint("Start a new run: `headrace run`."))
}

/// Reads until `into` is full or the slice ends; says how much, and whether it ended.
fn read_full(source: &mut dyn ByteSource, into: &mut [u8]) -> Result<(usize, bool), CoreError> {
    let mut length = 0;
    while length < into.len() {
        match source.read(&mut into[length..])? {
            0 => return Ok((length, true)),
            count => length += count,
        }
    }
    Ok((length, false))
}
