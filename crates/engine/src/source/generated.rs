//! Text of TPC-H, made instead of read.

use std::io::Read;

use headrace_generate::{TpchTable, TpchText};
use headrace_types::{CoreError, ErrorKind};

use super::ByteSource;
use crate::spec::{FileSpec, GenerateSource, SliceSpec};

/// A chunk of a table.
pub struct Generated(TpchText);

impl Generated {
    pub fn open(generate: &GenerateSource, file: &FileSpec, slice: &SliceSpec) -> Result<Self, CoreError> {
        let failed = |text: String| CoreError::new(ErrorKind::Specification, text).at_file(&file.path);
        let table: TpchTable = generate.table.parse().map_err(|error| failed(format!("{error}")))?;
        let text = TpchText::new(table, generate.scale, slice.number, generate.chunks);
        Ok(Generated(text.map_err(|error| failed(error.to_string()))?))
    }
}

impl ByteSource for Generated {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        self.0.read(into).map_err(|error| CoreError::new(ErrorKind::Internal, format!("generator: {error}")))
    }

    fn taken_bytes(&self) -> u64 {
        0
    }
}
