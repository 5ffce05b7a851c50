//! Texts and bytes, from views.

use std::hint::select_unpredictable;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericByteViewArray, types::ByteViewType};
use arrow_buffer::{Buffer, NullBuffer};

use super::slots::{Fault, LENGTH_BYTES, Slots, nulls_of};
use crate::postgres::plan::Encoding;

/// Bytes that a view holds itself.
const INLINE_BYTES: u32 = 12;
const VIEW_BYTES: usize = 16;

/// Rooms of values that are copied whole: views, and what takes a few loads and stores.
const COPIED_ROOMS: [usize; 3] = [VIEW_BYTES, 32, LARGEST_COPIED_ROOM];
pub(crate) const LARGEST_COPIED_ROOM: usize = 64;

/// Room of the length and version of a text that is not copied to the slots.
const CUT_ROOM: usize = LENGTH_BYTES + 1;

/// How to write a column of texts.
pub(crate) struct Text {
    /// A byte in front of the text.
    version: Option<u8>,
}

/// The views of a text or bytes column.
struct Views<'a> {
    views: &'a [u128],
    /// The same, as bytes.
    view_bytes: &'a [u8],
    buffers: &'a [Buffer],
    nulls: Option<&'a NullBuffer>,
}

impl Text {
    /// The bytes as they are.
    pub(crate) fn plain() -> Encoding {
        Encoding::Text(Text { version: None })
    }

    /// The bytes behind a version byte.
    pub(crate) fn with_version(version: u8) -> Encoding {
        Encoding::Text(Text { version: Some(version) })
    }

    /// Room of the values of some rows.
    pub(crate) fn room(&self, array: &dyn Array, rows: Range<usize>) -> Result<usize, Fault> {
        let views = Views::of(array)?;
        let longest = match views.nulls {
            None => views.views[rows].iter().map(|view| *view as u32).max(),
            Some(nulls) => rows.filter(|row| nulls.is_valid(*row)).map(|row| views.views[row] as u32).max(),
        };
        let bytes = longest.unwrap_or(0) as usize + LENGTH_BYTES;
        let room = COPIED_ROOMS.into_iter().find(|room| bytes <= *room && self.version.is_none());
        Ok(room.unwrap_or(CUT_ROOM))
    }

    /// Appends the values of a tile, whose room is `room`, or leaves the texts to the time when the rows move.
    pub(crate) fn fill(&self, array: &dyn Array, column: usize, room: usize, slots: &mut Slots) -> Result<(), Fault> {
        let views = Views::of(array)?;
        match room {
            VIEW_BYTES => views.append_views(slots),
            32 => views.append_copies::<32>(slots),
            LARGEST_COPIED_ROOM => views.append_copies::<LARGEST_COPIED_ROOM>(slots),
            _ => self.append_cut(&views, column, slots),
        }
    }

    /// Appends what stands in front of the texts.
    fn append_cut(&self, views: &Views<'_>, column: usize, slots: &mut Slots) -> Result<(), Fault> {
        let first = slots.rows().start;
        let version_bytes = usize::from(self.version.is_some());
        let bytes = |row: usize| (views.views[first + row] as u32 as usize).saturating_add(version_bytes);
        let is_long = |row: &usize| i32::try_from(bytes(*row)).is_err() && !views.is_null(first + row);
        if let Some(row) = (0..slots.rows().len()).find(is_long) {
            return Err(Fault { row: first + row, found: format!("{} bytes", bytes(row)) });
        }
        slots.append(CUT_ROOM, views.nulls, |row, place| {
            place[..LENGTH_BYTES].copy_from_slice(&(bytes(row) as u32).to_be_bytes());
            place[LENGTH_BYTES] = self.version.unwrap_or(0);
            LENGTH_BYTES + version_bytes
        });
        slots.cut(column);
        Ok(())
    }

    /// The text of a row, empty if it is NULL.
    pub(crate) fn of_row(array: &dyn Array, row: usize) -> Result<&[u8], Fault> {
        let views = Views::of(array)?;
        if views.is_null(row) { Ok(&[]) } else { views.text(row) }
    }
}

impl<'a> Views<'a> {
    fn of(array: &'a dyn Array) -> Result<Self, Fault> {
        fn parts<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Views<'_> {
            let views = array.views();
            let view_bytes = views.inner().as_slice();
            Views { views, view_bytes, buffers: array.data_buffers(), nulls: nulls_of(array) }
        }
        let texts = array.as_string_view_opt().map(parts);
        texts.or_else(|| array.as_binary_view_opt().map(parts)).ok_or_else(|| Fault::of_type(array))
    }

    /// What can be read from the first byte of a text on. Which texts are in their views is hard to guess for a processor.
    #[inline(always)]
    fn readable(&self, row: usize) -> Option<&'a [u8]> {
        let view = self.views[row];
        let is_inline = view as u32 <= INLINE_BYTES;
        let index = select_unpredictable(is_inline, 0, (view >> 64) as u32 as usize);
        let buffer = self.buffers.get(index).map_or(&[][..], Buffer::as_slice);
        let buffer = select_unpredictable(is_inline, self.view_bytes, buffer);
        buffer.get(select_unpredictable(is_inline, row * VIEW_BYTES + LENGTH_BYTES, (view >> 96) as usize)..)
    }

    /// The bytes of a text. Arrow's own arrays have none outside their buffers, but those from elsewhere might.
    fn text(&self, row: usize) -> Result<&'a [u8], Fault> {
        let text = self.readable(row).and_then(|readable| readable.get(..self.views[row] as u32 as usize));
        text.ok_or_else(|| Fault { row, found: "a text outside its buffers".to_owned() })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends texts of up to 12 bytes: the view itself, with the length in network order.
    fn append_views(&self, slots: &mut Slots) -> Result<(), Fault> {
        let views = &self.views[slots.rows()];
        slots.append(VIEW_BYTES, self.nulls, |row, place| {
            let length = views[row] as u32;
            let swapped = views[row] & !u128::from(u32::MAX) | u128::from(length.to_be());
            place.copy_from_slice(&swapped.to_le_bytes());
            LENGTH_BYTES + length as usize
        });
        Ok(())
    }

    /// Appends texts that fit `ROOM` bytes with their length: all of the room is copied, if that many can be read, so that
    /// the processor need not guess the length.
    fn append_copies<const ROOM: usize>(&self, slots: &mut Slots) -> Result<(), Fault> {
        let first = slots.rows().start;
        let mut fault = None;
        slots.append(ROOM, self.nulls, |row, place| {
            let row = first + row;
            let length = self.views[row] as u32;
            let (front, place) = place.split_at_mut(LENGTH_BYTES);
            front.copy_from_slice(&length.to_be_bytes());
            match self.readable(row).and_then(|readable| readable.get(..ROOM - LENGTH_BYTES)) {
                Some(readable) => place.copy_from_slice(readable),
                None if self.is_null(row) => return 0,
                None => match self.text(row) {
                    Ok(text) => place[..text.len()].copy_from_slice(text),
                    Err(outside) => fault = Some(outside),
                },
            }
            LENGTH_BYTES + length as usize
        });
        fault.map_or(Ok(()), Err)
    }
}
