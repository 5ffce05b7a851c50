//! The line of a reject in `.jsonl`, but for its front: written by hand, because a load may reject every row.

use std::collections::HashMap;
use std::io::{self, Write};

use headrace_parse::Reject;
use headrace_types::Layout;

use super::LongRow;
use super::layouts::Layouts;
use super::slice_files::write_front;
use super::tally::Kind;
use super::wording::{message, text_of};
use crate::report::{AlsoBad, LocatedReject};

/// What all lines of a flow are made of.
pub struct Lines {
    layouts: Layouts,
    /// Of each file: name and number.
    files: Vec<Vec<u8>>,
    /// Of all destinations, if lines tell which of them lack a row.
    destinations: Vec<String>,
    max_row_bytes: usize,
}

/// The lines of one slice: what those of a kind have in common is made once.
#[derive(Default)]
pub struct SliceLines {
    kinds: HashMap<Kind, (Vec<u8>, Vec<u8>)>,
    tail: Vec<u8>,
}

impl Lines {
    /// `names`: of the files, as they may be shown; `destinations`: of those that lines tell of.
    pub fn new(layouts: Layouts, names: &[String], destinations: Vec<String>, max_row_bytes: usize) -> Self {
        let name =
            |(number, name): (usize, &String)| format!("\"file\":{},\"file_number\":{number}", json(name)).into_bytes();
        Lines { layouts, files: std::iter::zip(1.., names).map(name).collect(), destinations, max_row_bytes }
    }

    /// The end of a line, its line feed included. `takers`: the destinations that get rows of its slice, by number.
    pub fn tail<'s>(
        &self,
        own: &'s mut SliceLines,
        file: usize,
        takers: &[usize],
        reject: &Reject,
        long: Option<&LongRow>,
    ) -> &'s [u8] {
        let SliceLines { kinds, tail } = own;
        tail.clear();
        // Writing to memory cannot fail.
        let _ = self.write(tail, kinds, file, reject, long);
        let _ = self.end(tail, reject.lacking.as_deref().unwrap_or(takers));
        tail
    }

    /// The whole line as data, numbers as in the slice.
    pub fn located(&self, tail: &[u8], line: u64, bad_byte: u64) -> Option<LocatedReject> {
        let mut whole = Vec::with_capacity(tail.len() + 64);
        write_front(&mut whole, 0, line + 1, bad_byte).ok()?;
        whole.extend_from_slice(tail);
        serde_json::from_slice(&whole).ok()
    }

    fn write(
        &self,
        tail: &mut Vec<u8>,
        kinds: &mut HashMap<Kind, (Vec<u8>, Vec<u8>)>,
        file: usize,
        reject: &Reject,
        long: Option<&LongRow>,
    ) -> io::Result<()> {
        let own_bytes = reject.row.len() as u64;
        let (row_bytes, bad_bytes) = long.map_or((own_bytes, own_bytes), |long| (long.bytes, long.kept));
        let (row_byte, byte) = (reject.row_byte, reject.byte);
        tail.extend_from_slice(&self.files[file]);
        write!(tail, ",\"row_byte\":{row_byte},\"row_bytes\":{row_bytes},\"byte\":{byte}")?;
        let (number, layout) = (self.layouts.number(file), self.layouts.of(file));
        let made;
        let (head, foot) = match &reject.note {
            Some(_) => {
                made = self.of_kind(layout, reject);
                &made
            }
            None => kinds.entry((number, reject.column, reject.rule)).or_insert_with(|| self.of_kind(layout, reject)),
        };
        tail.extend_from_slice(head);
        match std::str::from_utf8(&reject.value) {
            Ok(text) => serde_json::to_writer(&mut *tail, text)?,
            Err(_) => serde_json::to_writer(&mut *tail, &text_of(&reject.value))?,
        }
        tail.extend_from_slice(foot);
        write!(tail, "{bad_bytes},\"also\":")?;
        if reject.also.is_empty() {
            tail.extend_from_slice(b"[]");
        } else {
            let also: Vec<AlsoBad> = reject.also.iter().map(|other| Self::also(layout, other)).collect();
            serde_json::to_writer(&mut *tail, &also)?;
        }
        Ok(())
    }

    /// Tells, where that is told, which destinations lack the row.
    fn end(&self, tail: &mut Vec<u8>, lacking: &[usize]) -> io::Result<()> {
        if !self.destinations.is_empty() {
            let names: Vec<&String> = lacking.iter().filter_map(|number| self.destinations.get(*number)).collect();
            tail.extend_from_slice(b",\"destinations\":");
            serde_json::to_writer(&mut *tail, &names)?;
        }
        tail.extend_from_slice(b"}\n");
        Ok(())
    }

    /// What stands before and behind the value of rejects of a kind.
    fn of_kind(&self, layout: &Layout, reject: &Reject) -> (Vec<u8>, Vec<u8>) {
        let column = reject.column.and_then(|index| layout.columns.get(index));
        let name = column.map_or("null".to_owned(), |column| json(&column.name));
        let number = reject.column.map_or("null".to_owned(), |index| (index + 1).to_string());
        let column_type = column.map_or("null".to_owned(), |column| json(&column.column_type.to_string()));
        let head = format!(",\"column\":{name},\"column_number\":{number},\"type\":{column_type},\"value\":");
        let (rule, code) = (reject.rule, reject.rule.code());
        let message = json(&message(reject, layout, self.max_row_bytes));
        let foot = format!(",\"rule\":\"{rule}\",\"code\":\"{code}\",\"message\":{message},\"bad_bytes\":");
        (head.into_bytes(), foot.into_bytes())
    }

    fn also(layout: &Layout, other: &headrace_parse::OtherValue) -> AlsoBad {
        AlsoBad {
            column: layout.columns.get(other.column).map_or_else(String::new, |column| column.name.clone()),
            rule: other.rule.to_string(),
            code: other.rule.code().to_owned(),
            byte: other.byte,
        }
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
