//! Target `convert_one`: one column of one type, hundreds of rows, texts around the valid ones.
//!
//! Every field is written by the fuzz bytes and stands in the file once or many times, so that a strange text meets every
//! place of a vector group between plain ones.

use headrace_types::ColumnType;

use super::input::Input;
use super::{Case, MOST_BYTES, column, dialect, formats, null_tokens, texts};

/// Case of the fuzz bytes.
pub fn case(bytes: &[u8]) -> Case {
    let mut input = Input::new(bytes);
    let column_type = texts::column_type(&mut input);
    let flags = input.byte();
    let mut layout = dialect('|', None);
    layout.null_tokens = null_tokens(&mut input);
    // Neighbours move the fields of the column around in memory, and a field behind the last mark of a row is another case.
    let (before, after) = (flags & 2 != 0, flags & 4 != 0);
    if before {
        layout.columns.push(column(0, ColumnType::Int32, true));
    }
    layout.columns.push(column(1, column_type, flags & 1 != 0));
    if flags & 16 != 0 {
        let place = layout.columns.len() - 1;
        layout.columns[place].format = formats::format(column_type, &mut input);
        formats::settle(&mut layout);
    }
    if after {
        layout.columns.push(column(2, ColumnType::String, true));
    }
    layout.trailing_delimiter = flags & 8 != 0;
    let column = layout.columns.iter().find(|column| column.name == "c1").cloned();
    let format = column.and_then(|column| column.format);
    let mut case = Case::new(layout, None, &mut input);
    let (front, back) = (if before { &b"1|"[..] } else { b"" }, if after { &b"|2"[..] } else { b"" });
    let write = |text: &[u8], bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(front);
        // Characters that would change the shape of the row are for the other target.
        bytes.extend(text.iter().filter(|byte| !matches!(byte, b'|' | b'\n')));
        bytes.extend_from_slice(back);
        bytes.extend(case.layout.trailing_delimiter.then_some(b'|'));
        bytes.push(b'\n');
    };
    let mut bytes = vec![];
    while !input.is_used_up() && bytes.len() < MOST_BYTES {
        let text = texts::field(column_type, format.as_ref(), &case.layout.null_tokens, &mut input);
        let among = [0, 0, 0, 1, 3, 7, 8, 9, 20, 250, 260, 520][input.below(12)];
        let (every, mut random) = (1 + input.below(17), input.random());
        write(&text, &mut bytes);
        for row in 0..among {
            if bytes.len() >= MOST_BYTES {
                break;
            }
            let plain = texts::plausible_of(column_type, format.as_ref(), &mut random);
            write(if row % every == 0 { &text } else { &plain }, &mut bytes);
        }
    }
    case.bytes = bytes;
    case
}
