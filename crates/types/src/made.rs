//! Columns that are made, and not read.

use serde::{Deserialize, Serialize};

use crate::ColumnType;

/// A column of which no field of a row is: it says where a row comes from. Never null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeColumn {
    /// Name, unique in its layout.
    pub name: String,
    /// What it says.
    pub from: MadeFrom,
}

/// What a made column says of its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeFrom {
    /// The last part of the path of its file.
    FileName,
    /// The path of its file.
    FilePath,
    /// Its number in its file, from 1, as rejects have it.
    RowNumber,
    /// Its line of its slice, from 0: cheaper, where somebody adds the slices before.
    SliceRow,
    /// Where it begins in the text of its file, from 0, bytes.
    ByteOffset,
    /// When the run began: microseconds since 1970, UTC. None while there is no run.
    LoadTime(Option<i64>),
    /// The name of the run. None while there is no run.
    RunId(Option<String>),
    /// The hash of the package that the run is of. None while there is no run.
    PackageHash(Option<String>),
    /// The number of its slice, as the ledger has it.
    Slice,
}

impl MadeFrom {
    /// The type of such columns.
    pub fn column_type(&self) -> ColumnType {
        match self {
            MadeFrom::FileName | MadeFrom::FilePath | MadeFrom::RunId(_) | MadeFrom::PackageHash(_) => {
                ColumnType::String
            }
            MadeFrom::RowNumber | MadeFrom::SliceRow | MadeFrom::ByteOffset | MadeFrom::Slice => ColumnType::Int64,
            MadeFrom::LoadTime(_) => ColumnType::TimestampTz,
        }
    }

    /// Whether it says something of a run, and there is none.
    pub fn lacks_run(&self) -> bool {
        matches!(self, MadeFrom::LoadTime(None) | MadeFrom::RunId(None) | MadeFrom::PackageHash(None))
    }
}
