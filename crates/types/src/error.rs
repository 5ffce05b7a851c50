//! Errors as data: what failed, where, what was found, what to do.

use serde::{Deserialize, Serialize};

use crate::ServerFields;

/// Kind of an error; says who can mend it and whether to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A source cannot be read.
    Source,
    /// A source file is not what it was when the plan was made.
    FileChanged,
    /// More rows were rejected than the flow allows.
    RejectLimit,
    /// A file of the run folder or the output folder cannot be written.
    Output,
    /// The destination refused something; trying again gives the same answer.
    Target,
    /// The destination cannot be reached, is locked, or is out of sessions: trying again later can work.
    TargetBusy,
    /// More memory is needed than the run has for it.
    Memory,
    /// The flow was cancelled from outside.
    Cancelled,
    /// A specification that contradicts itself; a defect of the caller.
    Specification,
    /// A defect of Headrace.
    Internal,
}

/// Where in the user's files something was met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// File path, as the plan names it.
    pub file: String,
    /// Row of the file, from 1; header rows count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Byte of the file, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// Of a row that has come out of a join: where the other one of the two stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_with: Option<String>,
}

/// An error of the core. Crosses the Python binding as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreError {
    /// Kind, stable.
    pub kind: ErrorKind,
    /// What failed on what, one line.
    pub what: String,
    /// Where.
    pub at: Option<Location>,
    /// What was found there.
    pub found: Option<String>,
    /// What was expected instead.
    pub expected: Option<String>,
    /// One action the user can take.
    pub hint: Option<String>,
    /// Whether the same call may succeed later without any change.
    pub retryable: bool,
    /// What the server said, if a server reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerFields>>,
    /// Of a flow with several destinations: the name of the one that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
}

impl CoreError {
    /// A new error without location.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        CoreError {
            kind,
            what: what.into(),
            at: None,
            found: None,
            expected: None,
            hint: None,
            retryable: kind == ErrorKind::TargetBusy,
            server: None,
            destination: None,
        }
    }

    /// Adds the file.
    pub fn at_file(mut self, file: impl Into<String>) -> Self {
        self.at = Some(Location { file: file.into(), ..Location::default() });
        self
    }

    /// Adds the location.
    pub fn at(mut self, location: Location) -> Self {
        self.at = Some(location);
        self
    }

    /// Adds what was found.
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Adds what was expected.
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds one action.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the destination.
    pub fn of_destination(mut self, name: impl Into<String>) -> Self {
        self.destination = Some(name.into());
        self
    }

    /// Adds what the server said.
    pub fn server(mut self, fields: ServerFields) -> Self {
        self.server = Some(Box::new(fields));
        self
    }
}

impl std::fmt::Display for CoreError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.what)?;
        if let Some(at) = &self.at {
            write!(formatter, " (at {}", at.file)?;
            if let Some(row) = at.row {
                write!(formatter, ", row {row}")?;
            }
            if let Some(byte) = at.byte {
                write!(formatter, ", byte {byte}")?;
            }
            formatter.write_str(")")?;
        }
        if let Some(found) = &self.found {
            write!(formatter, "; found {found}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_members_as_json_and_leave_out_what_no_server_said() {
        let plain = CoreError::new(ErrorKind::TargetBusy, "what");
        let json = serde_json::to_value(&plain).unwrap();
        assert_eq!(json["kind"], "target_busy");
        assert_eq!((json.get("server"), plain.retryable), (None, true));
        let fields = ServerFields { sqlstate: "23505".to_owned(), ..ServerFields::default() };
        for error in [plain.clone(), plain.server(fields)] {
            let text = serde_json::to_string(&error).unwrap();
            assert_eq!(serde_json::from_str::<CoreError>(&text).unwrap(), error);
        }
    }
}
