//! Slices of a compressed file: ranges of its pieces. A slice begins behind the first row end of its pieces and goes on, into the
//! pieces behind, through the row that crosses.

use std::io::{self, Read};

use headrace_parse::Automaton;
use headrace_types::{CoreError, Encoding, RowEnd};

use super::cuts::{Cutter, Reader, Text};
use super::foot::Rows;
use super::{SlicingSpec, equal_cuts, unreadable};
use crate::source::{Pieces, Place, Stop, decoded, from_place};
use crate::spec::{FileSpec, TextRange};

/// Text that is decoded from the piece in front of the place where reading begins.
struct PackedText<'a> {
    planned: &'a FileSpec,
    pieces: &'a Pieces,
    stop: &'a Stop,
}

impl Text for PackedText<'_> {
    fn reader(&self, from: u64, to: u64) -> io::Result<Box<dyn Read + '_>> {
        let text = from_place(self.planned, self.pieces.before(from), from, to, self.stop);
        Ok(Box::new(Reader(decoded(text.map_err(io::Error::other)?, self.planned.encoding))))
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
    stop: &Stop,
) -> Result<(Vec<u64>, Vec<TextRange>), CoreError> {
    let text_bytes = pieces.text_bytes();
    let whole = TextRange { piece_begin: 0, piece_end: text_bytes, begin: planned.first_byte, end: None };
    let mut cuts = vec![0, planned.size_bytes];
    let mut texts = vec![whole];
    let places = wanted_places(planned, pieces, spec);
    let (Some(end), false) = (text_bytes, places.is_empty()) else { return Ok((cuts, texts)) };
    let text = PackedText { planned, pieces, stop };
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

/// Where slices of about the wanted size begin: behind what stands before the data, in which the rules of rows mean nothing.
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
        if place.file_byte >= target && place.text_byte >= planned.data_begin() {
            places.push(*place);
            target = (place.file_byte / step + 1) * step;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, ColumnType, ErrorKind, Layout};

    use super::*;
    use crate::slices::plan_slices;
    use crate::spec::Compression;

    /// Frames of zstd, each of them a place where pieces may begin.
    fn frames(text: &[u8]) -> Vec<u8> {
        let frame = |text: &[u8]| {
            let mut bytes = vec![0; zstd_safe::compress_bound(text.len())];
            let length = zstd_safe::compress(&mut bytes[..], text, 1).unwrap();
            bytes.truncate(length);
            bytes
        };
        text.chunks(270_000).flat_map(frame).collect()
    }

    /// To be cut at every piece.
    fn spec(folder: &tempfile::TempDir, text: &[u8], skip_lines: u32) -> SlicingSpec {
        let path = folder.path().join("file.zst");
        std::fs::write(&path, frames(text)).unwrap();
        let columns = ["a", "b"].map(|name| Column::new(name, ColumnType::String, true)).to_vec();
        let (delimiter, qualifier) = (",".to_owned(), Some('"'));
        let layout = Layout { delimiter, qualifier, skip_lines, columns, ..Layout::default() };
        let files = vec![path.to_str().unwrap().to_owned()];
        SlicingSpec { files, slice_bytes: 1, layout, compression: Compression::Auto, ..SlicingSpec::default() }
    }

    #[test]
    fn lines_that_are_skipped_tell_nothing_about_rows() {
        const LINES: u32 = 300_000;
        let folder = tempfile::tempdir().unwrap();
        // Whatever opens in the last line that is skipped is closed in front of it.
        let skipped = "x\n".repeat(LINES as usize) + "a\"b,\"" + &"c".repeat(200) + "\n";
        let rows: String = (0..100_000).map(|row| format!("{row},\"p\nq\"\n")).collect();
        let text = skipped + &rows;
        let slicing = plan_slices(&spec(&folder, text.as_bytes(), LINES + 1)).unwrap();
        assert!(slicing.slices.len() > 2);
        for slice in &slicing.slices[1..] {
            assert!(text[..slice.text().begin as usize].ends_with("q\"\n"), "{slice:?}");
        }
    }

    #[test]
    fn text_is_decoded_until_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let planned = plan_slices(&spec(&folder, b"1,2\n", 0)).unwrap().files.remove(0);
        let (pieces, stop) = (Pieces::default(), Stop::default());
        stop.set();
        let text = PackedText { planned: &planned, pieces: &pieces, stop: &stop };
        let error = text.reader(0, 4).unwrap().read(&mut [0; 4]).unwrap_err();
        assert_eq!(unreadable("file", error).kind, ErrorKind::Cancelled);
    }
}
