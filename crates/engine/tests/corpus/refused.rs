//! Files that say themselves that they are not in the encoding of their layout, or whose lines do not end as it says.

use headrace_types::CoreError;

/// Whether the file had to be refused.
pub fn is_refused(error: &CoreError, content: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"\xFF\xFE", b"\xFE\xFF", b"\0\0\xFE\xFF"];
    match error.what.as_str() {
        "a file is not in the encoding of its layout" => content.contains(&0),
        "the byte order mark of a file is not that of its layout" => marks.iter().any(|mark| content.starts_with(mark)),
        // Of layouts that take line feeds for ends of rows.
        "a file ends within the lines that are skipped" => {
            let last = content.len().saturating_sub(1);
            !content.contains(&b'\n') && content[..last].contains(&b'\r')
        }
        _ => false,
    }
}
