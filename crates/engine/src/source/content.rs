//! What a source holds, by its first bytes: text, something compressed, or a format that is not for this program.

use headrace_types::{CoreError, ErrorKind};

use crate::spec::Compression;

/// Bytes that have to be looked at: the mark of a tar archive stands behind its first header.
pub const HEAD_BYTES: usize = 512;
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Text, as far as can be seen.
    Text,
    /// Compressed text.
    Packed(Compression),
    /// Something else: its name, and how it becomes text.
    Foreign(&'static str, &'static str),
}

const XZ: &str = "Unpack it first, for instance with `xz -dc FILE |` and `files: \"-\"`.";
const BZIP2: &str = "Unpack it first, for instance with `bzip2 -dc FILE |` and `files: \"-\"`.";
const LZ4: &str = "Unpack it first, for instance with `lz4 -dc FILE |` and `files: \"-\"`.";
const ARCHIVE: &str = "Take the files out of the archive first.";
const OTHER_PROGRAM: &str = "Export it as delimited text first.";
const DATABASE: &str = "Read it with a program that knows the format, and export delimited text.";

/// Marks at the start of formats that no delimited text begins with.
const MARKS: [(&[u8], Content); 22] = [
    (&[0x1F, 0x8B], Content::Packed(Compression::Gzip)),
    (&[0x28, 0xB5, 0x2F, 0xFD], Content::Packed(Compression::Zstd)),
    (b"BZh11AY&SY", Content::Foreign("bzip2", BZIP2)),
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], Content::Foreign("xz", XZ)),
    (&[0x5D, 0, 0, 0x80, 0], Content::Foreign("lzma", XZ)),
    (&[0x04, 0x22, 0x4D, 0x18], Content::Foreign("lz4", LZ4)),
    (
        &[0x1F, 0x9D],
        Content::Foreign("compress (.Z)", "Unpack it first, for instance with `gzip -dc FILE |` and `files: \"-\"`."),
    ),
    (b"\xFF\x06\x00\x00sNaPpY", Content::Foreign("snappy", "Unpack it first.")),
    (b"PK\x03\x04", Content::Foreign("a ZIP archive (or .xlsx)", ARCHIVE)),
    (b"PK\x05\x06", Content::Foreign("an empty ZIP archive", ARCHIVE)),
    (&[b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C], Content::Foreign("a 7z archive", ARCHIVE)),
    (b"Rar!\x1A\x07", Content::Foreign("a RAR archive", ARCHIVE)),
    (b"PAR1\x15", Content::Foreign("Parquet", DATABASE)),
    (b"ARROW1\0\0", Content::Foreign("Arrow", DATABASE)),
    (b"Obj\x01", Content::Foreign("Avro", DATABASE)),
    (b"ORC\x08", Content::Foreign("ORC", DATABASE)),
    (b"SQLite format 3\0", Content::Foreign("an SQLite database", DATABASE)),
    (b"PGDMP\x01", Content::Foreign("a dump of pg_dump", "Restore it with `pg_restore`.")),
    (b"PGCOPY\n\xFF\r\n\0", Content::Foreign("PostgreSQL's binary COPY", "Write it with COPY in text or CSV format.")),
    (&[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1], Content::Foreign("an old Office document", OTHER_PROGRAM)),
    (b"%PDF-", Content::Foreign("PDF", OTHER_PROGRAM)),
    (b"\x89HDF\r\n\x1A\n", Content::Foreign("HDF5", DATABASE)),
];

impl Content {
    fn of(head: &[u8]) -> Self {
        // The digit of a level may be any.
        let mut first = [0; 10];
        let length = first.len().min(head.len());
        first[..length].copy_from_slice(&head[..length]);
        if first.starts_with(b"BZh") && matches!(first[3], b'1'..=b'9') {
            first[3] = b'1';
        }
        let begins = |mark: &[u8]| if mark.len() <= length { first.starts_with(mark) } else { head.starts_with(mark) };
        if let Some((_, content)) = MARKS.iter().find(|(mark, _)| begins(mark)) {
            return *content;
        }
        // A zstd frame that is skipped may come first.
        if length >= 4 && first[0] & 0xF0 == 0x50 && first[1..4] == [0x2A, 0x4D, 0x18] {
            return Content::Packed(Compression::Zstd);
        }
        let (at, mark) = TAR_MARK;
        if head.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
            return Content::Foreign("a tar archive", ARCHIVE);
        }
        if head.get(8..).is_some_and(|rest| rest.starts_with(b"DUCK")) && head.contains(&0) {
            return Content::Foreign("a DuckDB database", DATABASE);
        }
        Content::Text
    }

    fn name(self) -> String {
        match self {
            Content::Text => "no compressed text".to_owned(),
            Content::Packed(compression) => compression.to_string(),
            Content::Foreign(name, _) => name.to_owned(),
        }
    }
}

/// What the ending of a name promises: how its text is compressed, if Headrace reads that; none if it promises nothing.
fn promised(path: &str) -> Option<(&str, Option<Compression>)> {
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    let compression = match ending.to_ascii_lowercase().as_str() {
        "gz" | "gzip" | "bgz" | "bgzf" | "tgz" => Some(Compression::Gzip),
        "zst" | "zstd" => Some(Compression::Zstd),
        "bz2" | "xz" | "lzma" | "lz4" | "z" | "zip" | "7z" | "rar" | "sz" | "snappy" | "parquet" | "orc" | "avro" => {
            None
        }
        _ => return None,
    };
    Some((ending, compression))
}

/// How a source is compressed: what its first bytes say, if its name and the package agree.
///
/// # Errors
/// `Source` if they do not, or if it holds what Headrace does not read.
pub fn compression(path: &str, wanted: Compression, head: &[u8]) -> Result<Compression, CoreError> {
    let found = Content::of(head);
    let shown = if head.is_empty() { "nothing: it is empty".to_owned() } else { found.name() };
    let other = |what: String, expected: &str, hint: &str| {
        Err(CoreError::new(ErrorKind::Source, what).at_file(path).found(shown.clone()).expected(expected).hint(hint))
    };
    match (wanted, found) {
        (Compression::None, _) => Ok(Compression::None),
        (_, Content::Foreign(_, hint)) => foreign(path, &shown, hint),
        (Compression::Auto, _) => {
            let is = if let Content::Packed(compression) = found { Some(compression) } else { None };
            match promised(path) {
                Some((ending, promise)) if is.is_none() || promise != is => other(
                    format!("a source holds something else than its name says: `.{ending}`"),
                    &promise.map_or_else(|| format!("`.{ending}`"), |promise| promise.to_string()),
                    "Name the file as what it is, or set `compression` of the source.",
                ),
                _ => Ok(is.unwrap_or(Compression::None)),
            }
        }
        (_, Content::Packed(compression)) if compression == wanted => Ok(wanted),
        _ => other(
            "a source is not compressed as the package says".to_owned(),
            &format!("`compression: {wanted}`"),
            "Correct `compression` of the source, or leave it out.",
        ),
    }
}

/// Fails for text that, once decoded, is something else again.
///
/// # Errors
/// `Source`.
pub fn check_text(path: &str, compression: Compression, head: &[u8]) -> Result<(), CoreError> {
    match Content::of(head) {
        Content::Text => Ok(()),
        Content::Foreign(name, hint) => foreign(path, &format!("{name}, in {compression}"), hint),
        Content::Packed(inner) => {
            foreign(path, &format!("{inner}, in {compression}"), "Unpack it once before it is loaded.")
        }
    }
}

fn foreign<T>(path: &str, found: &str, hint: &str) -> Result<T, CoreError> {
    Err(CoreError::new(ErrorKind::Source, "a source is no delimited text")
        .at_file(path)
        .found(found)
        .expected("text, or text compressed by gzip or zstd")
        .hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, wanted: Compression, head: &[u8]) -> Result<Compression, String> {
        compression(path, wanted, head)
            .map_err(|error| format!("{}; found {}", error.what, error.found.unwrap_or_default()))
    }

    #[test]
    fn content_decides_and_the_name_must_agree() {
        let (gzip, zstd): (&[u8], &[u8]) = (&[0x1F, 0x8B, 8, 0], &[0x28, 0xB5, 0x2F, 0xFD, 0]);
        let auto = Compression::Auto;
        assert_eq!(of("a.gz", auto, gzip), Ok(Compression::Gzip));
        assert_eq!(of("a.csv", auto, gzip), Ok(Compression::Gzip), "a name that promises nothing");
        assert_eq!(of("x.gz/a", auto, zstd), Ok(Compression::Zstd));
        assert_eq!(of("a.csv.ZST", auto, zstd), Ok(Compression::Zstd));
        assert_eq!(of("-", auto, b"1|2\n"), Ok(Compression::None));
        for (path, wanted, head) in [
            ("a.gz", auto, zstd),
            ("a.gz", auto, b"<html>".as_slice()),
            ("a.gz", auto, b""),
            ("a.xz", auto, b"1|2\n"),
            ("a.csv", Compression::Gzip, b"1|2\n"),
            ("a.csv", Compression::Zstd, gzip),
        ] {
            assert!(of(path, wanted, head).is_err(), "{path}");
        }
        assert_eq!(of("a.gz", Compression::None, gzip), Ok(Compression::None));
    }

    #[test]
    fn other_formats_are_named() {
        let mut tar = vec![b'a'; 600];
        tar[257..262].copy_from_slice(b"ustar");
        for (head, name) in [
            (b"BZh91AY&SY\x01".as_slice(), "bzip2"),
            (b"\xFD7zXZ\0\0", "xz"),
            (b"PK\x03\x04\x14", "ZIP"),
            (b"PAR1\x15\x04", "Parquet"),
            (b"SQLite format 3\0\x10", "SQLite"),
            (&tar, "tar"),
        ] {
            let error = of("file", Compression::Auto, head).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        for text in [b"BZh9 is a name|1\n".as_slice(), b"PAR1|2\n", b"PK|1\n", b"ORC|1\n", b"Obj|", b"", b"P", b"P*M"] {
            assert_eq!(of("file", Compression::Auto, text), Ok(Compression::None));
        }
    }
}
