//! Slices take every byte of their files once. Nothing else guarantees that no row is lost or loaded twice.

use super::{FileSpec, SliceSpec, TextRange};

/// What is wrong with the slices of some files. `None` if the slices of each file follow each other from the first byte of its text to
/// the last one. The slices of a file are in the order of their numbers. `has_all`: whether a file with text must have a slice; a
/// flow may leave out whole files.
pub fn gap_or_overlap(files: &[FileSpec], slices: &[SliceSpec], has_all: bool) -> Option<String> {
    // There may be very many of both.
    let mut by_file: Vec<Vec<&SliceSpec>> = vec![Vec::new(); files.len()];
    for slice in slices {
        match by_file.get_mut(slice.file) {
            Some(own) => own.push(slice),
            None => return Some(format!("slice {} is of no file", slice.number)),
        }
    }
    std::iter::zip(files, by_file).find_map(|(file, own)| {
        // Rows that come back are some of those of a path that several files share.
        let is_part = own.iter().any(|slice| slice.first_row.is_some());
        // The size of a stream and of generated rows is not known before they have been read.
        let is_known = file.stream.is_none() && file.size_bytes > 0;
        match own.is_empty() {
            _ if !is_known || is_part => None,
            true if has_all && file.size_bytes > file.first_byte => Some(format!("{} has no slice", file.path)),
            true => None,
            false => misfit(file, &own),
        }
    })
}

fn misfit(file: &FileSpec, slices: &[&SliceSpec]) -> Option<String> {
    // Bytes of the file, pieces of its text, and the text itself.
    let of_text = |number: fn(TextRange) -> (u64, Option<u64>)| -> Vec<(u64, Option<u64>)> {
        slices.iter().filter_map(|slice| slice.text.map(number)).collect()
    };
    let bytes = slices.iter().map(|slice| (slice.begin_byte, Some(slice.end_byte))).collect();
    let is_text = slices[0].text.is_some();
    if is_text && slices.iter().any(|slice| slice.text.is_none()) {
        return Some(format!("only some slices of {} have places in its text", file.path));
    }
    let pieces = of_text(|text| (text.piece_begin, text.piece_end));
    let texts = of_text(|text| (text.begin, text.end));
    let all = [
        ("byte", bytes, if is_text { 0 } else { file.first_byte }, Some(file.size_bytes)),
        ("piece of text at byte", pieces, 0, None),
        ("byte of text", texts, file.first_byte, None),
    ];
    all.into_iter().find_map(|(what, ranges, first, last)| {
        let (at, found) = break_of(&ranges, first, last)?;
        Some(format!("the slices of {} do not cover it once: {what} {at} is followed by {found}", file.path))
    })
}

/// Where ranges do not follow each other, and what is there instead. `last`: none where only the reader will know.
fn break_of(ranges: &[(u64, Option<u64>)], first: u64, last: Option<u64>) -> Option<(u64, String)> {
    let mut at = first;
    for (index, &(begin, end)) in ranges.iter().enumerate() {
        let is_last = index + 1 == ranges.len();
        match end {
            _ if begin != at => return Some((at, begin.to_string())),
            Some(end) if is_last && last.is_some_and(|last| last != end) => return Some((end, "the end".to_owned())),
            Some(end) => at = end,
            None if !is_last => return Some((begin, "the end".to_owned())),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(number: u32, file: usize, begin_byte: u64, end_byte: u64) -> SliceSpec {
        SliceSpec { number, file, begin_byte, end_byte, text: None, first_row: None }
    }

    fn file(size_bytes: u64) -> FileSpec {
        FileSpec { path: "a.csv".to_owned(), size_bytes, first_byte: 3, ..FileSpec::default() }
    }

    #[test]
    fn every_byte_is_in_one_slice() {
        let files = [file(20), file(9)];
        let good = [slice(1, 0, 3, 10), slice(2, 0, 10, 20), slice(3, 1, 3, 9)];
        assert_eq!(gap_or_overlap(&files, &good, true), None);
        // Any bound that moves is found, and so is a slice that is gone or there twice.
        for number in 0..good.len() {
            for (begin, end) in [(1, 0), (0, 1), (-1, 0), (0, -1)] {
                let mut moved = good.to_vec();
                moved[number].begin_byte = moved[number].begin_byte.wrapping_add_signed(begin);
                moved[number].end_byte = moved[number].end_byte.wrapping_add_signed(end);
                assert!(gap_or_overlap(&files, &moved, true).is_some(), "{number} {begin} {end}");
            }
            let twice = [&good[..=number], &good[number..]].concat();
            assert!(gap_or_overlap(&files, &twice, true).is_some(), "{number} twice");
        }
        assert!(gap_or_overlap(&files, &good[1..], true).is_some_and(|text| text.contains("byte 3 is followed by 10")));
        assert!(gap_or_overlap(&files, &[&good[..1], &good[2..]].concat(), true).is_some());
    }

    #[test]
    fn the_text_of_compressed_files_is_in_one_slice() {
        let packed = |number, bytes: (u64, u64), text: TextRange| SliceSpec {
            text: Some(text),
            ..slice(number, 0, bytes.0, bytes.1)
        };
        let first = TextRange { piece_begin: 0, piece_end: Some(100), begin: 3, end: Some(104) };
        let second = TextRange { piece_begin: 100, piece_end: Some(200), begin: 104, end: None };
        let check = |first, second| {
            gap_or_overlap(&[file(20)], &[packed(1, (0, 12), first), packed(2, (12, 20), second)], true)
        };
        assert_eq!(check(first, second), None);
        for (first, second) in [
            (TextRange { end: Some(103), ..first }, second),
            (TextRange { end: None, ..first }, second),
            (TextRange { begin: 4, ..first }, second),
            (TextRange { piece_end: Some(99), ..first }, second),
            (first, TextRange { begin: 105, ..second }),
            (first, TextRange { piece_begin: 101, ..second }),
        ] {
            assert!(check(first, second).is_some(), "{first:?} {second:?}");
        }
    }

    #[test]
    fn what_is_not_known_before_it_is_read_is_not_checked() {
        assert_eq!(gap_or_overlap(&[FileSpec::default()], &[slice(1, 0, 0, 0)], true), None);
        // A flow may leave out a file, a plan may not.
        assert_eq!(gap_or_overlap(&[file(20)], &[], false), None);
        assert_eq!(gap_or_overlap(&[file(3)], &[], true), None, "nothing but a byte order mark");
        assert_eq!(gap_or_overlap(&[file(20)], &[], true).as_deref(), Some("a.csv has no slice"));
    }
}
