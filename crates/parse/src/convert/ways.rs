//! Columns whose texts are written in one of several ways: a loop for each, the later ones where the earlier ones did not know
//! the text.

use crate::raw::fields::{TILE_ROWS, Tile};

/// Loops over tiles, each for one way. A trait, because a closure would be compiled for any processor.
pub trait Ways<Way> {
    /// Value of a text.
    type Value: Copy + Default;
    /// Values of a tile's texts that are written so, and for each row whether (not 0) it is not.
    fn run(&self, way: Way, tile: Tile<'_, '_>, values: &mut [Self::Value], inexact: &mut [u8]);
}

/// Texts for which another loop does not pay: it takes as long as to convert so many by themselves.
const FEW: u32 = 4;

/// Runs the loops in order, until (nearly) all texts are known. False when there are none.
#[inline(always)]
pub fn try_ways<Way, W: Ways<Way>>(
    ways: &W,
    order: impl Iterator<Item = Way>,
    tile: Tile<'_, '_>,
    values: &mut [W::Value],
    inexact: &mut [u8],
) -> bool {
    let (mut others, mut not_others) = ([W::Value::default(); TILE_ROWS], [0; TILE_ROWS]);
    let (others, not_others) = (&mut others[..tile.rows()], &mut not_others[..tile.rows()]);
    let mut is_first = true;
    for way in order {
        if !is_first && unknown_texts(tile, inexact) < FEW {
            break;
        }
        // One place that runs the loops: they are compiled into it.
        let (values_of_way, inexact_of_way) =
            if is_first { (&mut *values, &mut *inexact) } else { (&mut *others, &mut *not_others) };
        ways.run(way, tile, values_of_way, inexact_of_way);
        if !is_first {
            merge(values, inexact, others, not_others);
        }
        is_first = false;
    }
    !is_first
}

/// Rows that no loop knows so far; empty fields are no texts.
#[inline(always)]
fn unknown_texts(tile: Tile<'_, '_>, inexact: &[u8]) -> u32 {
    let rows = tile.rows();
    let (starts, ends, inexact) = (&tile.starts()[..rows], &tile.ends()[..rows], &inexact[..rows]);
    let mut count = 0;
    for row in 0..rows {
        count += u32::from(inexact[row] != 0) & u32::from(ends[row] != starts[row]);
    }
    count
}

/// Takes the values that another loop knows, where the first one did not.
#[inline(always)]
fn merge<T: Copy>(values: &mut [T], inexact: &mut [u8], others: &[T], not_others: &[u8]) {
    let rows = values.len().min(others.len());
    let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
    let (others, not_others) = (&others[..rows], &not_others[..rows]);
    for row in 0..rows {
        values[row] = if inexact[row] == 0 { values[row] } else { others[row] };
        inexact[row] = if inexact[row] == 0 { 0 } else { not_others[row] };
    }
}
