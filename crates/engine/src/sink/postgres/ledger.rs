//! Commit rows: what a unit tells the ledger of its slices, in its own transaction.

use headrace_types::{CoreError, ErrorKind};

use crate::postgres::Connection;
use crate::spec::CopyTable;
use crate::text_hash::TextHash;

/// What one unit committed of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceRows {
    /// Number of the slice.
    pub number: u32,
    /// Rows in the unit's table.
    pub loaded: u64,
    /// Rows rejected, in all; 0 in all units but one.
    pub rejected: u64,
    /// Rows that queries have left out; 0 in all units but one.
    pub filtered: u64,
    /// Header and blank lines; 0 in all units but one.
    pub skipped: u64,
    /// Bytes of its text; 0 in all units but one.
    pub text_bytes: u64,
    /// Values ignored in rows that could be read; 0 in all units but one.
    pub values_ignored: u64,
    /// The hash of its text; none in all units but one.
    pub text_hash: Option<TextHash>,
}

/// The commit rows that a table still lacks.
pub fn missing(table: &CopyTable, slices: impl IntoIterator<Item = SliceRows>) -> Vec<SliceRows> {
    slices.into_iter().filter(|slice| !table.committed.contains_key(&slice.number)).collect()
}

/// Writes the commit rows of slices of a partition, behind the fence of the run.
pub fn commit_slices(
    connection: &mut Connection,
    statement: &str,
    partition: &str,
    slices: &[SliceRows],
) -> Result<(), CoreError> {
    if slices.is_empty() {
        return Ok(());
    }
    let array = |value: fn(&SliceRows) -> String| {
        let values: Vec<String> = slices.iter().map(value).collect();
        format!("{{{}}}", values.join(","))
    };
    let arrays = [
        array(|slice| slice.number.to_string()),
        array(|slice| slice.loaded.to_string()),
        array(|slice| slice.rejected.to_string()),
        array(|slice| slice.skipped.to_string()),
        array(|slice| slice.text_bytes.to_string()),
        array(|slice| slice.values_ignored.to_string()),
        array(|slice| slice.filtered.to_string()),
        array(|slice| slice.text_hash.map_or_else(|| "NULL".to_owned(), |hash| hash.to_string())),
    ];
    let parameters: Vec<_> = [partition].into_iter().chain(arrays.iter().map(String::as_str)).map(Some).collect();
    let result = connection.query(statement, &parameters)?;
    let written = result.tag.rsplit(' ').next().and_then(|count| count.parse().ok());
    if written == Some(slices.len()) {
        return Ok(());
    }
    Err(CoreError::new(ErrorKind::Target, "the run no longer owns this load")
        .found("another run or a resumed one has taken the target over")
        .hint("Nothing of this writer was committed. Look at `headrace.run`, and resume or run again."))
}

/// The rows of a slice that an earlier attempt has committed into the table, which are as many as now; `None` if it has not.
///
/// # Errors
/// `Internal` for another number: its rows would be lost or doubled.
pub fn check_counted(table: &CopyTable, slice: u32, rows: u64) -> Result<Option<u64>, CoreError> {
    let Some(&known) = table.committed.get(&slice) else { return Ok(None) };
    if rows == known {
        return Ok(Some(known));
    }
    let what = format!("slice {slice} has other rows for {} than when an earlier attempt committed them", table.name);
    Err(CoreError::new(ErrorKind::Internal, what)
        .found(format!("{rows} rows"))
        .expected(format!("{known} rows"))
        .hint("Start a new run: `headrace run`."))
}
