//! Errors and notices of the server as data.

use fallible_iterator::FallibleIterator;
use headrace_types::ServerFields;
use postgres_protocol::message::backend::ErrorFields;

use super::wait::Broken;

/// Fields of an error or a notice. Before the login ends the server may use its own encoding: bytes that are not UTF-8
/// are shown as replacement characters.
pub fn server_fields(mut sent: ErrorFields<'_>) -> Result<ServerFields, Broken> {
    let mut fields = ServerFields::default();
    let mut translated_severity = String::new();
    while let Some(field) = sent.next().map_err(|error| Broken::Protocol(error.to_string()))? {
        let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'S' => translated_severity = text,
            b'V' => fields.severity = text,
            b'C' => fields.sqlstate = text,
            b'M' => fields.message = text,
            b'D' => fields.detail = Some(text),
            b'H' => fields.hint = Some(text),
            b'W' => fields.context = Some(text),
            b's' => fields.schema = Some(text),
            b't' => fields.table = Some(text),
            b'c' => fields.column = Some(text),
            b'n' => fields.constraint = Some(text),
            b'P' => fields.position = Some(text),
            _ => {} // place in the server's source code, and what later versions add
        }
    }
    if fields.severity.is_empty() {
        fields.severity = translated_severity;
    }
    Ok(fields)
}

/// Whether the server ends the session behind this error.
pub fn ends_session(fields: &ServerFields) -> bool {
    matches!(fields.severity.as_str(), "FATAL" | "PANIC")
}
