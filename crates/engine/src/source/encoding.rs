//! In which encoding a text is: as the layout says, if its first bytes do not say otherwise.

use headrace_types::{CoreError, Encoding, ErrorKind};

use super::ByteSource;
use super::utf16::Utf16;

/// Byte order marks, and whose they are; longer ones first.
const MARKS: [(&[u8], &str); 5] = [
    (b"\xFF\xFE\0\0", "utf-32le"),
    (b"\0\0\xFE\xFF", "utf-32be"),
    (b"\xEF\xBB\xBF", "utf-8"),
    (b"\xFF\xFE", "utf-16le"),
    (b"\xFE\xFF", "utf-16be"),
];

/// A source as stage text.
pub fn decoded<'a>(source: impl ByteSource + 'a, encoding: Encoding) -> Box<dyn ByteSource + 'a> {
    if encoding.is_utf16() { Box::new(Utf16::new(source, encoding)) } else { Box::new(source) }
}

/// Length of the byte order mark that a text begins with, and its encoding. `head`: its first bytes.
///
/// # Errors
/// `Source` when they are not those of a text in the encoding of the layout.
pub fn text_start(path: &str, head: &[u8], wanted: Encoding) -> Result<(usize, Encoding), CoreError> {
    let mark = MARKS.iter().find(|(mark, _)| head.starts_with(mark));
    let agrees = |own: &str| own == wanted.name() || (wanted == Encoding::Utf16 && own.starts_with("utf-16"));
    match mark {
        Some((mark, own)) if agrees(own) => Ok((mark.len(), Encoding::try_from((*own).to_owned()).unwrap_or(wanted))),
        Some((mark, own)) => {
            let expected = match wanted {
                Encoding::Page(_) => format!("text in {wanted}, which has no such mark"),
                _ => format!("the mark of {wanted}, or none"),
            };
            let hint = match *own {
                "utf-32le" | "utf-32be" => "Write the file in another encoding: UTF-32 is not supported.".to_owned(),
                "utf-8" => "Set `encoding: utf-8` in the layout.".to_owned(),
                _ => "Set `encoding: utf-16` in the layout.".to_owned(),
            };
            let found = format!("the mark of {own} ({})", hexadecimal(mark));
            Err(refusal("the byte order mark of a file is not that of its layout", path, found, expected, hint))
        }
        None if wanted == Encoding::Utf16 && !head.is_empty() => {
            let found = format!("the bytes {}", hexadecimal(&head[..head.len().min(4)]));
            let hint = format!("Set `encoding: {}` in the layout.", likely(head).unwrap_or("utf-16le` or `utf-16be"));
            let expected = "the mark of utf-16: FF FE or FE FF".to_owned();
            Err(refusal("a file does not begin with a byte order mark", path, found, expected, hint))
        }
        None if wanted == Encoding::Utf16 => Ok((0, Encoding::Utf16Le)),
        None => match likely(head).filter(|_| !wanted.is_utf16()) {
            Some(own) => {
                let found = format!("zero bytes at every other place of the first {}: {own}", head.len());
                let hint = format!("Set `encoding: {own}` in the layout.");
                Err(refusal("a file is not in the encoding of its layout", path, found, wanted.to_string(), hint))
            }
            None => Ok((0, wanted)),
        },
    }
}

/// The UTF-16 that text full of zero bytes is.
pub fn likely(head: &[u8]) -> Option<&'static str> {
    let zeros = |first: usize| head.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    let many = |zeros: usize| zeros >= 2 && 5 * zeros >= head.len();
    match (first, second) {
        (0, zeros) if many(zeros) => Some("utf-16le"),
        (zeros, 0) if many(zeros) => Some("utf-16be"),
        _ => None,
    }
}

fn refusal(what: &str, path: &str, found: String, expected: String, hint: String) -> CoreError {
    CoreError::new(ErrorKind::Source, what).at_file(path).found(found).expected(expected).hint(hint)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(head: &[u8], name: &str) -> Result<(usize, &'static str), String> {
        let wanted = Encoding::try_from(name.to_owned()).unwrap();
        let found = text_start("file", head, wanted).map(|(length, encoding)| (length, encoding.name()));
        found.map_err(|error| error.found.unwrap_or_default())
    }

    #[test]
    fn marks_have_to_agree() {
        assert_eq!(start(b"\xEF\xBB\xBFa", "utf-8"), Ok((3, "utf-8")));
        assert_eq!(start(b"\xFF\xFEa\0", "utf-16"), Ok((2, "utf-16le")));
        assert_eq!(start(b"\xFE\xFF\0a", "utf-16"), Ok((2, "utf-16be")));
        assert_eq!(start(b"\xFE\xFF\0a", "utf-16be"), Ok((2, "utf-16be")));
        assert_eq!(start(b"a\0", "utf-16le"), Ok((0, "utf-16le")));
        assert_eq!(start(b"", "utf-16"), Ok((0, "utf-16le")));
        assert_eq!(start(b"\xEF\xBB", "windows-1252"), Ok((0, "windows-1252")));
        assert!(start(b"\xFE\xFF\0a", "utf-16le").is_err());
        assert!(start(b"\xEF\xBB\xBFa", "windows-1252").is_err());
        assert!(start(b"\xFF\xFEa\0", "utf-8").is_err());
        assert_eq!(start(b"\xFF\xFE\0\0a", "utf-16"), Err("the mark of utf-32le (FF FE 00 00)".to_owned()));
        assert_eq!(start(b"a\0b\0c", "utf-16"), Err("the bytes 61 00 62 00".to_owned()));
    }

    #[test]
    fn zero_bytes_tell_utf_16() {
        assert!(start(b"a\0|\0b\0\n\0", "utf-8").is_err());
        assert!(start(b"\0a\0|\0b\0\n", "windows-1252").is_err());
        assert_eq!(start(b"ab|\0\n", "utf-8"), Ok((0, "utf-8")));
        assert_eq!(start(b"\0\0\0\0", "utf-8"), Ok((0, "utf-8")));
    }
}
