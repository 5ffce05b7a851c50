//! A source without its footer, of which only the end tells where it begins: its last rows are held back until it comes.

use std::collections::VecDeque;
use std::io::Read as _;

use headrace_types::{CoreError, ErrorKind, Layout, Location};

use super::ByteSource;
use crate::last_row_end::FOUND_BYTES;
use crate::last_rows::LastRows;
use crate::spec::{FileSpec, HeldSpec, Margin};

/// Stage text that is read at once.
pub const WINDOW_BYTES: usize = 64 << 10;

/// The rows that were held back when the end came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footer {
    /// What they take.
    pub margin: Margin,
    /// The last of them, if it has no row end.
    pub open: Option<OpenLine>,
}

/// A last line without row end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLine {
    /// Where it begins, behind the begin of the footer.
    pub before: Margin,
    /// Its front.
    pub text: Vec<u8>,
}

/// A source without its last rows, as stage text.
pub struct WithoutFooter {
    source: Box<dyn ByteSource>,
    rows: LastRows,
    /// Text that was read and not given.
    held: VecDeque<u8>,
    window: Vec<u8>,
    /// Bytes of stage text that were given.
    given: u64,
    limit: HeldSpec,
    path: String,
    footer: Option<Footer>,
}

impl WithoutFooter {
    /// `source`: from the start of the row at `begin` of the file on.
    ///
    /// # Errors
    /// `Specification` for a layout that means two things.
    pub fn new(
        source: Box<dyn ByteSource>,
        limit: HeldSpec,
        file: &FileSpec,
        layout: &Layout,
        begin: u64,
    ) -> Result<Self, CoreError> {
        Ok(WithoutFooter {
            source,
            rows: LastRows::new(file, layout, begin)?,
            held: VecDeque::new(),
            window: vec![0; WINDOW_BYTES],
            given: 0,
            limit,
            path: file.path.clone(),
            footer: None,
        })
    }

    /// Bytes held that are part of no footer.
    fn free_bytes(&self) -> usize {
        (self.rows.start().byte - self.given) as usize
    }

    /// Reads on. Nothing that is held is free.
    fn refill(&mut self) -> Result<(), CoreError> {
        let count = self.source.read(&mut self.window)?;
        if count == 0 {
            return self.finish();
        }
        let text = &self.window[..count];
        self.rows.read(text);
        // Not twice as much as is needed, as it would grow by itself: this memory is in the plan.
        let most = self.limit.text_bytes as usize + WINDOW_BYTES;
        if self.held.capacity() - self.held.len() < count {
            let wanted = (2 * self.held.len()).max(WINDOW_BYTES).min(most).max(self.held.len() + count);
            self.held.reserve_exact(wanted - self.held.len());
        }
        self.held.extend(text);
        if (self.held.len() - self.free_bytes()) as u64 > self.limit.text_bytes {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CoreError> {
        let open = self.rows.finish();
        let (start, end) = (self.rows.start(), self.rows.end());
        let margin = Margin { bytes: end.source_byte - start.source_byte, lines: end.line - start.line };
        // A comment may stand behind the last rows, or alone: then it is not held back.
        let open = open.filter(|open| open.byte >= start.byte).map(|open| OpenLine {
            before: Margin { bytes: open.source_byte - start.source_byte, lines: open.line - start.line },
            text: self.held.range((open.byte - self.given) as usize..).take(FOUND_BYTES).copied().collect(),
        });
        self.footer = Some(Footer { margin, open });
        Ok(())
    }

    fn too_long(&self) -> CoreError {
        let HeldSpec { rows, text_bytes, .. } = self.limit;
        let start = self.rows.start();
        CoreError::new(ErrorKind::Source, "rows that may be the footer of a source are too long to be held back")
            .at(Location { file: self.path.clone(), byte: Some(start.source_byte), ..Location::default() })
            .found(format!(
                "more than {} MB in {} and the lines around",
                text_bytes >> 20,
                counted_rows(u64::from(rows))
            ))
            .expected(
                "rows that can be held in memory until it is known whether a compressed file, or a stream, ends there",
            )
            .hint("Load it from a file that is not compressed: that is read from its end.")
    }
}

fn counted_rows(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

impl ByteSource for WithoutFooter {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        loop {
            let count = self.free_bytes().min(into.len());
            if count > 0 {
                let count = self.held.read(&mut into[..count]).unwrap_or(0);
                self.given += count as u64;
                return Ok(count);
            }
            if self.footer.is_some() || into.is_empty() {
                return Ok(0);
            }
            self.refill()?;
        }
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }

    fn footer(&self) -> Footer {
        self.footer.clone().unwrap_or_default()
    }
}
