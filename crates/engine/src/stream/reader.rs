//! Reads a slice: its text in blocks, its blocks as batches, its rejects and its account.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use headrace_parse::infer::TableFacts;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Guess, Parsed, Parser, RefusedRow, Reject, RowScanner};
use headrace_types::{CoreError, Encoding, ErrorKind, Layout, Location, Rule};

use crate::flow::{FillingLargeRow, Shared};
use crate::last_row_end::{self, FOUND_BYTES};
use crate::meter::{Doing, StreamMeter, Work};
use crate::rejects::{LongRow, SliceRejects};
use crate::report::{DestinationCounts, Dialect, SliceReport, TransformCounts};
use crate::sink::{Origin, Placed};
use crate::source::{ByteSource, Footer, Hashing, OpenLine, Opened, open};
use crate::spec::{Compression, FileSpec, Margin, SliceSpec};
use crate::stream::opening::Opening;
use crate::transforms::{Refuser, Remaining, Transforms};
use crate::unified::Unified;

/// Memory of a block beyond its text: padding on both sides, and room for the row end that a last line may lack.
pub const BLOCK_OVERHEAD_BYTES: usize = 2 * PADDING_BYTES + 64;
/// A block filled to less than this part is copied to memory of its own size, so that small files do not pin big blocks.
const SMALL_PART: usize = 4;
/// Longest mark in front of the first row.
const UTF8_MARK_BYTES: u64 = 3;

/// Where the rows of a slice go.
pub trait Rows {
    /// What takes facts about texts in the place of batches, where the parser can give them.
    fn facts(&mut self) -> Option<&mut TableFacts> {
        None
    }

    /// The rows of a batch on their way to each destination; those that do not go on are refused.
    fn place(
        &mut self,
        batch: RecordBatch,
        counts: Counts<'_>,
        remaining: &mut Remaining,
    ) -> Result<Vec<Option<Placed>>, CoreError>;

    /// The same of rows in front of a union or join, of which those that leave for that are left; `remaining`: what has become of these, and
    /// what was refused of all.
    fn place_in_front(
        &mut self,
        front: &Transforms,
        batch: RecordBatch,
        counts: Counts<'_>,
        remaining: &mut Remaining,
    ) -> Result<InFront, CoreError>;

    /// Whether anything is done in [`Rows::place`].
    fn is_transformed(&self) -> bool;

    /// Takes the rows. False when the flow was stopped.
    fn write(&mut self, placed: Vec<Option<Placed>>, origin: Origin) -> Result<bool, CoreError>;
}

/// What is counted on the way: of each transform, and of each destination what it gets and what was refused at its end.
pub struct Counts<'a> {
    pub transforms: &'a mut [TransformCounts],
    pub destinations: &'a mut [DestinationCounts],
}

/// The rows of a batch behind what stands in front of a union or join.
pub struct InFront {
    /// Those that meet others, if there are any.
    pub met: Option<RecordBatch>,
    /// Those of destinations that get rows of one source alone.
    pub placed: Vec<Option<Placed>>,
}

/// Reads the slices of files of one layout, one after the other.
pub struct Reader<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    layout: &'a Layout,
    /// A parser of the present file, and the order of its fields.
    parser: Parser,
    fields: Option<Vec<Option<usize>>>,
    /// Columns of the layout that batches have.
    wanted: Vec<usize>,
    /// Of a source of a union, or apart: what its rows pass before they are rows of the union, or come to destinations of their own.
    front: Option<&'a Transforms>,
    /// Of a source of a union: makes rows of the union of them.
    unified: Option<Unified>,
    /// Bytes behind the last row end of the block before.
    carry: Vec<u8>,
    /// The present block, unless all of it has gone.
    block: Option<OpenBlock<'a>>,
    /// Whether the stream keeps rows of another reader, and with them their memory: then it must not wait for ever for more.
    pub is_memory_kept: bool,
    /// Whether its place in its slice tells how far the stream has come.
    pub tells_progress: bool,
}

/// A slice on its way.
pub struct Progress<'a> {
    slice: &'a SliceSpec,
    /// Its file, with all that is known of it now.
    pub file: FileSpec,
    /// Set when an earlier attempt has committed the rows everywhere: only the rejects are wanted.
    is_committed: bool,
    source: Box<dyn ByteSource>,
    hashing: Hashing,
    /// Place in the file of the first byte that is not parsed yet.
    at_byte: u64,
    /// Bytes of the file that were counted for progress.
    taken_bytes: u64,
    rejects: Option<SliceRejects>,
    /// What is known of it so far.
    pub account: SliceReport,
    /// What was refused at the ends of ways, and what went to the destinations.
    pub ends: Vec<DestinationCounts>,
    /// Of each way out of a join, its rows that were refused in front of it, or stand for joined ones which were; none without a join.
    pub refused_around_join: Option<Vec<u64>>,
    /// Rows that the parser has rejected.
    pub rejected_before: u64,
    /// Rows that were refused on their way into a join.
    pub rejected_in_front: u64,
    has_ended: bool,
}

impl<'a> Progress<'a> {
    /// The slice.
    pub fn slice(&self) -> &'a SliceSpec {
        self.slice
    }
}

/// Text in memory. The memory is given back before the guard says that the large-row memory is free.
struct Held<'a> {
    memory: Memory,
    length: usize,
    large: Option<FillingLargeRow<'a>>,
}

/// A block whose rows are handed on batch by batch.
struct OpenBlock<'a> {
    buffer: Buffer,
    /// Bytes of its text that were parsed.
    from: usize,
    length: usize,
    real_length: usize,
    /// Whether the slice ends with it.
    ended: bool,
    /// Whether the parser may have more rows of it.
    more: bool,
    /// Its last batch, as long as it is not known which of its rows go on.
    open_batch: Option<OpenBatch>,
    large: Option<FillingLargeRow<'a>>,
}

/// A batch that was parsed: what the parser has found, and where.
struct OpenBatch {
    parsed: Parsed,
    /// Bytes of the file.
    real_bytes: u64,
    has_rows: bool,
    origin: Origin,
}

/// What became of the rows of a batch.
pub struct Gone {
    /// How many go to the sink.
    pub out: u64,
    /// Whether they have passed anything.
    pub is_transformed: bool,
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

impl<'a> Reader<'a> {
    /// For files of this layout. `wanted`: the columns that batches have.
    ///
    /// # Errors
    /// Those of a layout that cannot be read.
    pub fn new(
        shared: &'a Arc<Shared>,
        meter: &'a StreamMeter,
        layout: &'a Layout,
        wanted: Option<Vec<usize>>,
    ) -> Result<Self, CoreError> {
        let wanted = wanted.unwrap_or_else(|| (0..layout.all_columns().count()).collect());
        let parser = Parser::of_columns(layout, &wanted)?;
        Ok(Reader {
            shared,
            meter,
            layout,
            parser,
            fields: None,
            wanted,
            front: None,
            unified: None,
            carry: Vec::new(),
            block: None,
            is_memory_kept: false,
            tells_progress: true,
        })
    }

    /// For the files of each source of a flow, in the order of the sources. Rows of those that join are read where they are joined.
    ///
    /// # Errors
    /// Those of a layout that cannot be read.
    pub fn of_sources(shared: &'a Arc<Shared>, meter: &'a StreamMeter) -> Result<Vec<Self>, CoreError> {
        let (spec, wanted) = (&shared.spec, shared.destinations.wanted_columns());
        if spec.sources() == 0 {
            return Ok(vec![Reader::new(shared, meter, &spec.layout, wanted)?]);
        }
        let reader = |source: usize| {
            let union = spec.union.as_ref().filter(|_| !spec.is_apart(source));
            let unified = union.map(|union| Unified::new(spec, union, source, wanted.as_deref())).transpose()?;
            let wanted = unified.as_ref().map(|unified| unified.wanted().to_vec());
            let reader = Reader::new(shared, meter, spec.layout_of_source(source), wanted)?;
            Ok(Reader { front: shared.transforms.front(source), unified, ..reader })
        };
        (0..spec.sources()).map(reader).collect()
    }

    /// Opens a slice, and stands before its first row.
    pub fn open<'s>(&mut self, slice: &'s SliceSpec) -> Result<Progress<'s>, CoreError> {
        let is_committed = self.shared.spec.is_slice_committed(slice.number);
        self.carry.clear();
        self.block = None;
        self.meter.turn_to(Doing::Read);
        let hashing = Hashing::new(self.shared.destinations.hashes_texts());
        let Opened { source, file, hashing } = open(&self.shared.spec, slice, &self.shared.outcome, hashing)?;
        let is_other = self.parser.encoding() != file.encoding_in(self.layout);
        if is_other || self.fields != file.columns {
            self.parser = file.parser(self.layout, &self.wanted)?;
            self.fields.clone_from(&file.columns);
        }
        let head = file.head_of(slice);
        self.parser.begin_slice(&file.row_end, head.lines)?;
        file.place_rows(&mut self.parser, slice, self.shared.row_counts.lines_before(slice.number))?;
        let at_byte = file.text_begin(slice);
        let dialect = Dialect::of_stream(&file);
        let mut progress = Progress {
            slice,
            file,
            is_committed,
            source,
            hashing,
            at_byte,
            taken_bytes: 0,
            rejects: None,
            account: SliceReport {
                stream: Some(self.meter.number()),
                committed: is_committed,
                dialect,
                transforms: self.shared.transforms.no_counts(),
                ..SliceReport::new(slice)
            },
            ends: vec![DestinationCounts::default(); self.shared.spec.destinations()],
            refused_around_join: None,
            rejected_before: 0,
            rejected_in_front: 0,
            has_ended: false,
        };
        self.skip_margin(&mut progress, head);
        Ok(progress)
    }

    /// Keeps the rejects of a slice, however reading it has ended. To be called for each one that was opened.
    pub fn end_rejects(&self, progress: &mut Progress<'_>) -> Result<(), CoreError> {
        self.shared.rejects.end_slice(progress.slice.number, progress.rejects.take())
    }

    /// Counts what stands behind the last row of a slice that was read to its end.
    pub fn close(&mut self, progress: &mut Progress<'_>) -> Result<(), CoreError> {
        self.meter.turn_to(Doing::Read);
        let foot = progress.file.foot_of(progress.slice);
        self.skip_margin(progress, foot);
        self.skip_footer(progress)?;
        progress.hashing.add_foot(&progress.file, progress.slice)?;
        progress.account.text_hash = progress.hashing.text_hash();
        self.count_ways(progress);
        Ok(())
    }

    /// Counts what is not given to the destinations, from what the transforms have counted.
    pub fn count_ways(&self, progress: &mut Progress<'_>) {
        let Progress { account, ends, rejected_before, refused_around_join, .. } = progress;
        self.shared.count_ways(account, ends, *rejected_before, refused_around_join.as_deref());
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

    /// Reads a slice to its end. False when the flow was stopped.
    pub fn read(&mut self, progress: &mut Progress<'_>, rows: &mut dyn Rows) -> Result<bool, CoreError> {
        while self.fill_block(progress)? {
            while let Some(batch) = self.parse_batch(progress, rows.facts())? {
                if !self.hand_on(progress, batch, rows)? {
                    return Ok(false);
                }
            }
            self.end_block(progress);
        }
        Ok(!self.shared.outcome.stopped())
    }

    /// Takes a batch through [`Rows::place`] and [`Rows::write`]. False when the flow was stopped.
    fn hand_on(
        &mut self,
        progress: &mut Progress<'_>,
        batch: Option<RecordBatch>,
        rows: &mut dyn Rows,
    ) -> Result<bool, CoreError> {
        let (mut in_front, mut remaining) = (Remaining::default(), Remaining::default());
        let Progress { account, ends, .. } = progress;
        let (batch, beside) = match (batch, self.front) {
            (Some(batch), Some(front)) => {
                let counts = Counts { transforms: &mut account.transforms, destinations: ends };
                let InFront { met, placed } = rows.place_in_front(front, batch, counts, &mut in_front)?;
                (met, placed)
            }
            (batch, _) => (batch, Vec::new()),
        };
        let batch = match (batch, &self.unified) {
            (Some(batch), Some(unified)) => Some(unified.rows(&batch)?),
            (batch, _) => batch,
        };
        let counts = Counts { transforms: &mut account.transforms, destinations: ends };
        let placed = batch.map(|batch| rows.place(batch, counts, &mut remaining)).transpose()?.unwrap_or_default();
        let placed = each_once(beside, placed);
        let out = rows_of(&placed);
        let remaining = match &self.unified {
            Some(unified) => in_front.behind(remaining, |refusal| unified.refusal(refusal)),
            None if self.front.is_some() => in_front, // of a source apart, of which nothing goes on
            None => remaining,
        };
        let lacking = |by: &[Refuser]| self.shared.lacking(by, progress.slice.number);
        let refused = remaining.into_refused(&progress.file, lacking);
        let origin = self.end_batch(progress, refused, &Gone { out, is_transformed: rows.is_transformed() })?;
        progress.account.out += out;
        let Some(origin) = origin.filter(|_| out > 0 && !progress.is_committed) else { return Ok(true) };
        self.meter.turn_to(Doing::Write);
        let is_taken = rows.write(placed, origin)?;
        self.meter.turn_to(Doing::Parse);
        Ok(is_taken)
    }

    /// The next batch of a slice, behind [`Reader::end_batch`] for the one before; none when it has ended, or the flow was stopped.
    pub fn next_batch(&mut self, progress: &mut Progress<'_>) -> Result<Option<RecordBatch>, CoreError> {
        loop {
            if self.block.is_none() && !self.fill_block(progress)? {
                return Ok(None);
            }
            match self.parse_batch(progress, None)? {
                Some(Some(batch)) => {
                    // It may be kept while the other side waits for the large-row memory.
                    self.block.iter_mut().for_each(|block| block.large = None);
                    return Ok(Some(batch));
                }
                Some(None) => drop(self.end_batch(progress, Vec::new(), &Gone { out: 0, is_transformed: true })?),
                None => self.end_block(progress),
            }
        }
    }

    /// Where the last batch stands, as long as it is not ended.
    pub fn origin(&self) -> Option<Origin> {
        self.block.as_ref()?.open_batch.as_ref().map(|open| open.origin)
    }

    /// Whether it keeps a block.
    pub fn holds_block(&self) -> bool {
        self.block.is_some()
    }

    /// Reads the next block of a slice that is to be parsed. False when there is none, or the flow was stopped.
    fn fill_block(&mut self, progress: &mut Progress<'_>) -> Result<bool, CoreError> {
        while !progress.has_ended && !self.shared.outcome.stopped() {
            match self.fill(progress.source.as_mut())? {
                Filled::Text { held, ended } => {
                    self.block = Some(self.opened(progress, held, ended)?);
                    return Ok(true);
                }
                Filled::LongRow(held, scanner) => progress.has_ended = self.skip_long_row(progress, held, scanner)?,
                Filled::Nothing => progress.has_ended = true,
            }
            self.count_taken(progress);
        }
        Ok(false)
    }

    /// Gives a block up whose rows have gone.
    fn end_block(&mut self, progress: &mut Progress<'_>) {
        let Some(OpenBlock { buffer, from, length, ended, .. }) = self.block.take() else { return };
        self.carry.extend_from_slice(&buffer[PADDING_BYTES + from..PADDING_BYTES + length]);
        progress.has_ended = ended;
        self.count_taken(progress);
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
        if self.tells_progress {
            self.meter.slice_is_at(progress.account.bytes, taken_bytes);
        }
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
            shared
                .large_row(room + BLOCK_OVERHEAD_BYTES, self.is_memory_kept)
                .map(|(guard, memory)| (Some(guard), memory))
        } else {
            let starved = || self.is_memory_kept || shared.destinations.starved();
            shared.blocks.acquire(&shared.outcome, starved).map(|memory| (None, memory))
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
                break Filled::Text { held: Held { memory, length, large }, ended };
            } else if length >= max_row_bytes {
                break Filled::LongRow(Held { memory, length, large }, scanner);
            }
            room = (2 * room).min(max_row_bytes);
            if large.is_none() {
                // Never waits for one memory while it holds another.
                self.carry.extend_from_slice(&memory.bytes()[PADDING_BYTES..PADDING_BYTES + length]);
                drop(memory);
                let _waiting = self.meter.pause(Doing::WaitBlock);
                let Some((guard, taken)) = shared.large_row(room + BLOCK_OVERHEAD_BYTES, self.is_memory_kept) else {
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

    /// The text as a block that is to be parsed.
    fn opened(&mut self, progress: &Progress<'_>, held: Held<'a>, ended: bool) -> Result<OpenBlock<'a>, CoreError> {
        let Held { mut memory, length: real_length, large } = held;
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
        Ok(OpenBlock { buffer, from: 0, length, real_length, ended, more: true, open_batch: None, large })
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

    /// Parses the next rows of the block: `None` when it has no more, otherwise their batch, unless all of them are rejects.
    /// [`Reader::end_batch`] has to follow. `facts`: takes facts in the place of the batch.
    fn parse_batch(
        &mut self,
        progress: &Progress<'_>,
        facts: Option<&mut TableFacts>,
    ) -> Result<Option<Option<RecordBatch>>, CoreError> {
        self.meter.turn_to(Doing::Parse);
        let shared = self.shared;
        let Some(open) = self.block.as_mut().filter(|block| block.more) else { return Ok(None) };
        let &mut OpenBlock { from, length, real_length, ended, .. } = open;
        let at_byte = progress.at_byte;
        let slab = |bytes| shared.slabs.take(bytes);
        let first_line = self.parser.next_line();
        let block = Block { buffer: &open.buffer, from, length, real_length, first_byte: at_byte, ended };
        let mut parsed = self.parser.parse_or_gather(block, slab, facts)?;
        if parsed.consumed == 0 && from > 0 && !ended {
            // The batch before had as many rows as it could have, and the block no more whole ones.
            open.more = false;
            return Ok(None);
        }
        if parsed.consumed == 0 && !ended {
            // It would be asked the same question for ever.
            let path = shared.spec.source.files[progress.slice.file].path.clone();
            return Err(CoreError::new(ErrorKind::Internal, "the parser does not see the row end of a block")
                .at(Location { file: path, byte: Some(at_byte), ..Location::default() }));
        }
        let consumed = parsed.consumed;
        let start_of_text = PADDING_BYTES + from;
        let real = &open.buffer[start_of_text..start_of_text + consumed.min(real_length - from)];
        let real_bytes = self.parser.encoding().source_bytes(real);
        let batch = parsed.batch.take();
        let origin = Origin { slice: progress.slice.number, first_line, at_byte, bytes: real_bytes };
        open.from += consumed;
        open.more = parsed.more && open.from < length;
        open.open_batch = Some(OpenBatch { parsed, real_bytes, has_rows: batch.is_some(), origin });
        Ok(Some(batch))
    }

    /// Says what became of the rows of the last batch: hands its rejects on, the `refused` rows among them, and counts all. Where it
    /// stands; nothing without a batch, or of one that was ended before.
    pub fn end_batch(
        &mut self,
        progress: &mut Progress<'_>,
        refused: impl IntoIterator<Item = RefusedRow, IntoIter: ExactSizeIterator>,
        gone: &Gone,
    ) -> Result<Option<Origin>, CoreError> {
        let Some(open) = self.block.as_mut() else { return Ok(None) };
        let Some(OpenBatch { parsed, real_bytes, has_rows, origin }) = open.open_batch.take() else { return Ok(None) };
        let shared = self.shared;
        let (slice, file, rejects) = (progress.slice, &progress.file, &mut progress.rejects);
        // Of all rows that the parser has made, so that it does not depend on the ways that a flow has.
        let ignored = if has_rows { self.parser.ignored() } else { BTreeMap::new() };
        let refused = refused.into_iter();
        let refused_rows = refused.len() as u64;
        if refused_rows > 0 {
            self.parser.refuse(refused);
        }
        self.parser
            .reject_rows(&open.buffer, &mut |reject| shared.reject(slice, &of_layout(reject, file), None, rejects))?;
        let Parsed { lines, skipped, line_ends, .. } = parsed;
        let rows = parsed.rows();
        let rejected = parsed.rejected + refused_rows;
        progress.rejected_before += parsed.rejected;
        progress.at_byte += real_bytes;
        let account = &mut progress.account;
        account.bytes += real_bytes;
        account.lines += lines;
        account.skipped += skipped;
        account.lf_lines += line_ends.lf;
        account.crlf_lines += line_ends.crlf;
        account.is_utf8 = match self.parser.guess() {
            Guess::Either => None,
            guess => Some(guess == Guess::Utf8),
        };
        for (counts, own) in [(&mut account.replaced, &parsed.replaced), (&mut account.stray_qualifiers, &parsed.stray)]
        {
            for (column, count) in self.wanted.iter().zip(own).filter(|(_, count)| **count > 0) {
                *counts.entry(*column).or_default() += count;
            }
        }
        account.filled_rows += parsed.unequal.filled;
        account.extended_rows += parsed.unequal.extended;
        for (field, (nulls, cut)) in ignored {
            let counts = account.ignored.entry(progress.file.column(field).unwrap_or(field)).or_default();
            counts.nulls += nulls;
            counts.cut += cut;
            account.values_ignored += nulls + cut;
        }
        account.rows += rows;
        account.rejected += rejected;
        self.meter.add(Work { rows, bytes: real_bytes, out: gone.out, is_transformed: gone.is_transformed });
        shared.counters.add(real_bytes, rows, rejected);
        Ok(Some(origin))
    }

    /// Rejects a row without holding it: reads on to its end. True when the slice ended with it.
    fn skip_long_row(
        &mut self,
        progress: &mut Progress<'_>,
        held: Held<'_>,
        mut scanner: RowScanner,
    ) -> Result<bool, CoreError> {
        let Held { memory, length, large } = held;
        let encoding = self.parser.encoding();
        let text = &memory.bytes()[PADDING_BYTES..PADDING_BYTES + length];
        let mut reject = Reject {
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
            lacking: None,
        };
        let (shared, slice) = (self.shared, progress.slice.number);
        let mut parts = SourceParts::new(encoding);
        let mut row = LongRow::default();
        let rejects = &mut progress.rejects;
        parts.push(text, false, &mut |part| shared.keep_part(slice, part, &mut row, rejects))?;
        let mut opening = Opening::new(progress.file.lines(self.layout)?, encoding);
        opening.push(text);
        // The end of the row may be far away: others may need the large-row memory meanwhile.
        drop((memory, large));
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
            opening.push(part);
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
        if let Some(opened) = opening.open() {
            // That is why the row is so long.
            reject.rule = Rule::UnclosedQualifier;
            reject.byte += opened.byte;
            reject.column = Some(opened.field).filter(|&field| field < progress.file.layout(self.layout).columns.len());
            reject.value = headrace_parse::shown(encoding, &opened.text);
            reject = of_layout(reject, &progress.file);
        }
        self.parser.skip_line();
        progress.at_byte += skipped;
        progress.account.bytes += skipped;
        progress.account.lines += 1;
        progress.account.rows += 1;
        progress.account.rejected += 1;
        progress.rejected_before += 1;
        self.shared.counters.add(skipped, 1, 1);
        self.shared.reject(progress.slice, &reject, Some(&row), &mut progress.rejects)?;
        self.meter.add(Work { rows: 1, bytes: skipped, ..Work::default() });
        Ok(ended && self.carry.is_empty())
    }
}

/// What was placed of a batch at different moments: each destination gets its rows at one of them.
fn each_once(mut one: Vec<Option<Placed>>, other: Vec<Option<Placed>>) -> Vec<Option<Placed>> {
    if one.is_empty() {
        return other;
    }
    one.iter_mut().zip(other).filter(|(_, own)| own.is_some()).for_each(|(one, own)| *one = own);
    one
}

/// How many rows they are.
pub fn rows_of(placed: &[Option<Placed>]) -> u64 {
    placed.iter().flatten().map(|placed| placed.batch.num_rows() as u64).sum()
}

/// The reject of a file's parser with the columns of the flow's layout.
fn of_layout(mut reject: Reject, file: &FileSpec) -> Reject {
    if file.columns.is_none() {
        return reject;
    }
    let column = |field: usize| file.column(field).unwrap_or(field);
    reject.column = reject.column.and_then(|field| file.column(field));
    // Of fields that are of no column nothing is told but that they are wrong.
    reject.also.retain(|other| file.column(other.column).is_some());
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
