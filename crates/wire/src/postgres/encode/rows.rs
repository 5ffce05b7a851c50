//! Rows: cells one behind the other.

use arrow_array::Array;

use super::cells::Stride;
use super::strip::Strip;
use super::{Column, EncodeError, Tile};

/// Room for rows on their way to the output. Its bytes are set once, so that cells can be copied whole and what is too much
/// is overwritten by the next one; small enough for the processor's first cache.
const ROOM_BYTES: usize = 8 << 10;

/// Where rows are put together.
#[derive(Default)]
pub(super) struct Rows {
    room: Vec<u8>,
    /// Bytes of a row of the last tile.
    row_bytes: usize,
}

impl Rows {
    /// Rows, at least one, that likely fill an output of `length` bytes up to `full`.
    pub(super) fn likely_to_fit(&self, full: usize, length: usize) -> usize {
        (full.saturating_sub(length) / self.row_bytes.max(1)).saturating_add(1)
    }

    /// Appends rows of a tile that `strips` hold, at least one, until `into` holds `full` bytes; returns the row behind them.
    pub(super) fn append(
        &mut self,
        strips: &[Strip],
        columns: &[Column],
        arrays: &[&dyn Array],
        tile: Tile,
        full: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let before = into.len();
        // Above what a row takes: the last cell may be copied with more bytes than count.
        let row_room = strips.iter().map(|strip| strip.stride.map_or(0, Stride::bytes)).sum::<usize>();
        if self.room.len() < ROOM_BYTES.max(2 * row_room) {
            self.room.resize(ROOM_BYTES.max(2 * row_room), 0);
        }
        let room = &mut self.room[..];
        let mut at = 0;
        let mut next = tile.end;
        for (place, row) in tile.clone().enumerate() {
            if row > tile.start && into.len() + at >= full {
                next = row;
                break;
            }
            if room.len() - at < row_room {
                into.extend_from_slice(&room[..at]);
                at = 0;
            }
            for strip in strips {
                match strip.stride {
                    Some(Stride::Bytes16) => copy_cell::<16>(strip, place, room, at),
                    Some(Stride::Bytes32) => copy_cell::<32>(strip, place, room, at),
                    Some(Stride::Bytes64) => copy_cell::<64>(strip, place, room, at),
                    None => {
                        let to = Target { room: &mut *room, row_room, into: &mut *into };
                        at = append_long(strip, columns, arrays, row, to, at)?;
                        continue;
                    }
                }
                at += usize::from(strip.lengths[place]);
            }
        }
        into.extend_from_slice(&room[..at]);
        self.row_bytes = (into.len() - before) / (next - tile.start).max(1);
        Ok(next)
    }
}

#[inline(always)]
fn copy_cell<const BYTES: usize>(strip: &Strip, place: usize, room: &mut [u8], at: usize) {
    room[at..at + BYTES].copy_from_slice(&strip.cells[place * BYTES..(place + 1) * BYTES]);
}

/// Where a long text goes.
struct Target<'a> {
    room: &'a mut [u8],
    /// Bytes of the room that must stay free for the rest of the row.
    row_room: usize,
    into: &'a mut Vec<u8>,
}

/// Appends a long text at `at` of the room, or behind what is there; returns the place behind it in the room. Apart, so that
/// `at` stays in a register where there are no long texts.
#[inline(never)]
fn append_long(
    strip: &Strip,
    columns: &[Column],
    arrays: &[&dyn Array],
    row: usize,
    to: Target<'_>,
    mut at: usize,
) -> Result<usize, EncodeError> {
    let Target { room, row_room, into } = to;
    strip.pieces(columns, arrays, row, |piece| match room.get_mut(at..at + piece.len() + row_room) {
        Some(place) => {
            place[..piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        None => {
            into.extend_from_slice(&room[..at]);
            into.extend_from_slice(piece);
            at = 0;
        }
    })?;
    Ok(at)
}
