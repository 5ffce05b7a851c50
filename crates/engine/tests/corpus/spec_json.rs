//! Target `spec_json`: what comes as JSON from above. Anything may stand there; nothing may panic, and what is accepted must
//! work: a layout is the same after a round trip, and a parser of it takes any text, unless its parts mean two things together.

use headrace_engine::slices::SlicingSpec;
use headrace_engine::spec::FlowSpec;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Parser};
use headrace_types::{CoreError, ErrorKind, Layout, RowEnd};

use crate::input::Input;

const WORDS: &[&str] = &[
    r#"{"delimiter":"|","columns":[{"name":"a","type":{"kind":"int32"},"nullable":true}]}"#,
    r#""delimiter":"#,
    r#""columns":"#,
    r#""trailing_delimiter":true,"#,
    r#""skip_lines":"#,
    r#""null_tokens":["NULL",""],"#,
    r#""qualifier":"\"","#,
    r#""escape":"\\","#,
    r#""comment":"#,
    r#""row_end":{"exactly":"#,
    r#""shape":"fixed_width","row_end":"none","columns":[{"place":{"start":0,"width":3},"#,
    r#""blanks_around_qualifier":true,"#,
    r#""row_end_in_fields":"data","#,
    r#""encoding":"windows-1252","#,
    r#""name":"b","type":{"kind":"string"},"nullable":true,"delimiter":"#,
    r#"{"name":"a","type":{"kind":"#,
    r#"{"name":"é","type":{"kind":"decimal","precision":38,"scale":38},"nullable":false}"#,
    r#""decimal","precision":"#,
    r#","scale":"#,
    r#""char","length":"#,
    r#""varchar","length":4294967295},"nullable":true}"#,
    r#""timestamptz"},"nullable":false}"#,
    r#"{"name":"flow","layout":"#,
    r#","source":{"files":[{"path":"x"}],"slices":[{"number":1,"file":0,"begin_byte":0,"end_byte":9}]},"sink":{"kind":"null"},"#,
    r#""streams":1,"memory":{"block_bytes":4096,"blocks":1,"max_row_bytes":4096},"rejects":{"limit":0,"folder":"","file_stem":""}}"#,
    r#"{"files":["x"],"slice_bytes":18446744073709551615,"layout":"#,
    r#""format":{"kind":"number","decimal":",","group":{"mark":".","sizes":[3],"optional":true},"currency":["€"]},"#,
    r#""format":{"kind":"patterns","patterns":["dd.MM.yy HH:mm:ss,fff"],"pivot":1950},"#,
    r#""format":{"kind":"epoch","unit":"ms"},"#,
    r#""format":{"kind":"truth","true":["J"],"false":["N"]},"#,
    r#""made":[{"name":"r","from":"#,
    r#""shape":"ragged_right","width_unit":"characters","#,
    r#""header":"by_name","other_columns":"ignore","#,
    r#""unmappable":"replace","#,
    r#""short_rows":"fill","extra_fields":"keep","#,
    r#""blank_rows":"keep","#,
    r#""mixed_row_ends":"reject","#,
    r#""escape_codes":"postgres","#,
    r#""empty":{"value":"#,
    r#""empty":"text","trim":"both","on_error":"ignore","on_truncation":"fail","#,
    r#"{"kind":"arrow","columns":["a"],"position":"p"}"#,
    r#"{"kind":"arrow","columns":["a"],"place_column":"p"}"#,
    r#"{"kind":"locate","rows":[1099511627776],"ended":[]}"#,
    r#""generate":{"table":"lineitem","scale":1e308,"chunks":0}"#,
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "0",
    "-1",
    "255",
    "256",
    "1e5",
    "null",
    "\"\\u0000\"",
    "\"\\n\"",
    "\"|\"",
    "\"|\\n\"",
];

/// Reads one document.
///
/// # Panics
/// When something that was accepted does not work.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut document = vec![];
    while !input.is_used_up() {
        match input.below(WORDS.len() + 4) {
            word if word < WORDS.len() => document.extend_from_slice(WORDS[word].as_bytes()),
            _ => document.extend_from_slice(input.take(1)),
        }
    }
    for document in [bytes, &document] {
        if let Ok(layout) = serde_json::from_slice::<Layout>(document) {
            check_layout(&layout, bytes);
        }
        if let Ok(flow) = serde_json::from_slice::<FlowSpec>(document)
            && flow.check().is_ok()
        {
            check_layout(&flow.layout, bytes);
        }
        drop(serde_json::from_slice::<SlicingSpec>(document));
    }
}

fn check_layout(layout: &Layout, text: &[u8]) {
    let json = serde_json::to_string(layout).unwrap();
    assert_eq!(*layout, serde_json::from_str::<Layout>(&json).unwrap(), "{json}");
    if layout.check().is_err() {
        assert!(Parser::new(layout).is_err());
        return;
    }
    let mut parser = match Parser::new(layout) {
        Ok(parser) => parser,
        // Every part is right, and the parts do not fit together.
        Err(error) => return assert!(means_two_things(&error), "{json}: {error:?}"),
    };
    parser.begin_slice(&layout.known_row_end().unwrap_or(RowEnd::Either), 0).unwrap();
    let mut block = Memory::new(text.len() + 1 + 2 * PADDING_BYTES);
    block.bytes_mut()[PADDING_BYTES..PADDING_BYTES + text.len()].copy_from_slice(text);
    block.bytes_mut()[PADDING_BYTES + text.len()] = b'\n';
    let (mut rejected, mut kept) = (0, 0);
    let mut on_reject = |_| {
        rejected += 1;
        Ok(())
    };
    let length = text.len() + 1;
    let buffer = block.freeze();
    let (mut from, mut rows) = (0, 0);
    for ended in [false, true] {
        loop {
            let first_byte = from as u64;
            let block = Block { buffer: &buffer, from, length, real_length: length, first_byte, ended };
            let parsed = parser.parse(block, Memory::new, &mut on_reject).unwrap();
            from += parsed.consumed;
            rows += parsed.rows();
            kept += parsed.batch.map_or(0, |batch| batch.num_rows() as u64);
            if !parsed.more {
                break;
            }
            assert!(parsed.consumed > 0);
        }
    }
    assert_eq!((from, rows), (length, rejected + kept));
}

/// What is left for the parser to refuse where `Layout::check` found nothing.
fn means_two_things(error: &CoreError) -> bool {
    let texts = [
        " begin alike",
        " stands inside of ",
        "what `empty` of column ",
        "too many columns with delimiters of their own",
        "too many different bytes in delimiters",
    ];
    error.kind == ErrorKind::Specification && texts.iter().any(|text| error.what.contains(text))
}
