//! Where rows of a replay stood: a file of two numbers for each of its lines, read as far as a batch needs them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use headrace_parse::{Origins, RowOrigin};
use headrace_types::{CoreError, ErrorKind};

use crate::spec::{FileSpec, SliceSpec};

/// Bytes of a number, of which each line has two.
const NUMBER_BYTES: usize = 8;

/// The places of one slice.
struct OriginsFile {
    file: File,
    path: String,
    /// Lines before the slice.
    first_line: u64,
}

/// What is kept of the rows of a slice; nothing for rows that come for the first time, and where no column asks.
///
/// # Errors
/// Those of opening the file.
pub fn origins(file: &FileSpec, slice: &SliceSpec) -> Result<Option<Box<dyn Origins>>, CoreError> {
    let Some(path) = file.origin.as_ref().and_then(|origin| origin.places.as_ref()) else { return Ok(None) };
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Some(Box::new(OriginsFile { file, path: path.clone(), first_line: slice.first_row.unwrap_or_default() })))
}

impl Origins for OriginsFile {
    fn of_lines(&mut self, first: u64, count: usize) -> Result<Vec<RowOrigin>, CoreError> {
        let mut bytes = vec![0; 2 * NUMBER_BYTES * count];
        let at_byte = (self.first_line + first) * (2 * NUMBER_BYTES) as u64;
        self.file.read_exact_at(&mut bytes, at_byte).map_err(|error| unreadable(&self.path, &error))?;
        let (numbers, _) = bytes.as_chunks::<NUMBER_BYTES>();
        let pairs = numbers.chunks_exact(2);
        let number = |bytes| u64::from_le_bytes(bytes);
        Ok(pairs.map(|pair| RowOrigin { row: number(pair[0]), byte: number(pair[1]) }).collect())
    }
}

fn unreadable(path: &str, error: &std::io::Error) -> CoreError {
    CoreError::new(ErrorKind::Source, "cannot read where the rejects stood")
        .at_file(path)
        .found(error.to_string())
        .hint("Restore the run folder, or replay the file once more.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::OriginSpec;

    #[test]
    fn lines_of_a_slice_behind_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("origins").to_str().unwrap().to_owned();
        let content: Vec<u8> = (0..8_u64).flat_map(u64::to_le_bytes).collect();
        std::fs::write(&path, content).unwrap();
        let of = |places: &str| FileSpec {
            origin: Some(OriginSpec { path: "a.csv".to_owned(), places: Some(places.to_owned()) }),
            ..FileSpec::default()
        };
        let slice = SliceSpec { first_row: Some(1), ..SliceSpec::default() };
        let mut found = origins(&of(&path), &slice).unwrap().unwrap();
        assert_eq!(found.of_lines(1, 2).unwrap(), [RowOrigin { row: 4, byte: 5 }, RowOrigin { row: 6, byte: 7 }]);
        assert_eq!(found.of_lines(0, 0).unwrap(), []);
        assert_eq!(found.of_lines(2, 2).unwrap_err().kind, ErrorKind::Source, "the file is too short");
        assert!(origins(&of("nowhere"), &slice).is_err());
        assert!(origins(&FileSpec::default(), &slice).unwrap().is_none());
    }
}
