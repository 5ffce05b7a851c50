//! Slices of a compressed file: ranges of its pieces. A slice begins behind the first row end of its pieces and goes on, into the
//! pieces behind, through the row that crosses.

use std::io::{self, Read};

use headrace_parse::Automaton;
use headrace_types::{CoreError, Encoding, RowEnd};

use super::cuts::{Cutter, Reader, Text};
use super::foot::Rows;
use super::{SlicingSpec, equal_cuts, unreadable};
use crate::source::{Pieces, Place, decoded, from_place};
use crate::spec::{FileSpec, TextRange};

/// Text that is decoded from the piece in front of the place where reading begins.
struct PackedText<'a> {
    planned: &'a FileSpec,
    pieces: &'a Pieces,
}

impl Text for PackedText<'_> {
    fn reader(&self, from: u64, to: u64) -> io::Result<Box<dyn Read + '_>> {
        let text = from_place(self.planned, self.pieces.before(from), from, to).map_err(io::Error::other)?;
        Ok(Box::new(Reader(decoded(text, self.planned.encoding))))
    }

    fn encoding(&self) -> Encoding {
        self.planned.encoding
    }
}

/// Cuts of the file, and the text between them. One slice where pieces do not stand alone, or where it would take much reading to
/// tell where their first row ends, or where the footer begins.
pub fn cut_pieces(
    planned: &FileSpec,
    pieces: &Pieces,
    spec: &SlicingSpec,
    automaton: &Automaton,
) -> Result<(Vec<u64>, Vec<TextRange>), CoreError> {
    let text_bytes = pieces.text_bytes();
    let whole = TextRange { piece_begin: 0, piece_end: text_bytes, begin: planned.first_byte, end: None };
    let mut cuts = vec![0, planned.size_bytes];
    let mut texts = vec![whole];
    let places = wanted_places(planned, pieces, spec);
    let (Some(end), false) = (text_bytes, places.is_empty()) else { return Ok((cuts, texts)) };
    let text = PackedText { planned, pieces };
    let begins: Vec<u64> = places.iter().map(|place| place.text_byte).collect();
    let rows = Rows { text: &text, begin: planned.data_begin(), end, is_dear: true };
    // The last slice has to hold the whole footer.
    let Some(foot) = rows.foot(planned, &spec.layout)? else { return Ok((cuts, texts)) };
    let found = match &planned.row_end {
        RowEnd::Every(bytes) => equal_cuts(*bytes, planned.data_begin(), &begins, end),
        _ => {
            let found = Cutter::new(&text, automaton, end).near_cuts(&begins);
            found.map_err(|error| unreadable(&planned.path, error))?
        }
    };
    for (place, cut) in std::iter::zip(places, found) {
        let last = texts.len() - 1;
        let is_wanted = |cut: &u64| *cut > planned.data_begin().max(texts[last].begin) && *cut <= end - foot.bytes;
        let Some(cut) = cut.filter(is_wanted) else { continue };
        texts[last] = TextRange { piece_end: Some(place.text_byte), end: Some(cut), ..texts[last] };
        texts.push(TextRange { piece_begin: place.text_byte, piece_end: text_bytes, begin: cut, end: None });
        cuts.insert(cuts.len() - 1, place.file_byte);
    }
    Ok((cuts, texts))
}

/// Where slices of about the wanted size begin.
fn wanted_places(planned: &FileSpec, pieces: &Pieces, spec: &SlicingSpec) -> Vec<Place> {
    let Some(text_bytes) = pieces.text_bytes().filter(|bytes| *bytes > 0) else { return Vec::new() };
    let size = planned.size_bytes;
    let most_bytes = |text: u64| (u128::from(text) * u128::from(size) / u128::from(text_bytes)) as u64;
    let slice_bytes =
        spec.most_text_bytes.map_or(spec.slice_bytes, |text| spec.slice_bytes.min(most_bytes(text))).max(1);
    let step = size.div_ceil(size.div_ceil(slice_bytes).max(1)).max(1);
    let mut places: Vec<Place> = Vec::new();
    let mut target = step;
    for place in pieces.places().iter().skip(1) {
        if place.file_byte >= target {
            places.push(*place);
            target = (place.file_byte / step + 1) * step;
        }
    }
    places
}
