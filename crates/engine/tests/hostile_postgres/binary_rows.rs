//! Rows in binary form that are wrong, cut or too large.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use headrace_engine::postgres::{BinaryColumn, Connection, ConnectionSpec, RowsError};
use headrace_types::{ColumnType, ErrorKind};
use headrace_wire::postgres::Form;

use crate::fake::{Script, complete, connect, message, ready, report, request, session};
use crate::patience::soon;

/// A server whose sessions answer the first request with the script and close.
fn answering() -> (Script, ConnectionSpec) {
    let script = Script::default();
    let spoken = script.clone();
    let spec = session(move |mut stream| {
        request(&mut stream);
        spoken.speak(&mut stream);
    });
    (script, spec)
}

fn rows_of(connection: Connection) -> Result<Vec<RecordBatch>, RowsError> {
    let wanted = [BinaryColumn { place: 1, column_type: ColumnType::Int32, form: Form::Int4 }];
    let mut rows = connection.binary_rows("SELECT 'x', 7", &[], 2, &wanted)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        batches.push(batch);
    }
    Ok(batches)
}

fn answer() -> Vec<Vec<u8>> {
    let row = message(b'D', b"\0\x02\0\0\0\x01x\0\0\0\x04\0\0\0\x07");
    vec![message(b'1', b""), message(b'2', b""), row.clone(), row, complete("SELECT 2"), ready()]
}

#[test]
fn a_good_answer_is_understood() {
    let (script, spec) = answering();
    script.write(answer().concat());
    let batches = rows_of(connect(&spec)).unwrap();
    let values: Vec<i32> = batches[0].column(0).as_primitive::<Int32Type>().values().to_vec();
    assert_eq!((batches.len(), values), (1, vec![7, 7]));
}

#[test]
fn rows_that_are_cut_anywhere_are_an_error() {
    let whole = answer().concat();
    let (script, spec) = answering();
    for length in 0..whole.len() - 1 {
        script.write(whole[..length].to_vec());
        match rows_of(connect(&spec)).unwrap_err() {
            RowsError::Session(error) => assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rows_with_any_wrong_byte_end() {
    let whole = answer().concat();
    let (script, spec) = answering();
    for position in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, whole[position] ^ 1] {
            let mut bytes = whole.clone();
            bytes[position] = value;
            script.write(bytes);
            let connection = connect(&spec);
            soon(|| drop(rows_of(connection)));
        }
    }
}

#[test]
fn an_error_behind_rows_is_the_servers() {
    let (script, spec) = answering();
    let mut bytes = answer()[..4].concat();
    bytes.extend(report(b'E', "ERROR", "22012", b"division by zero"));
    bytes.extend(ready());
    script.write(bytes);
    match rows_of(connect(&spec)).unwrap_err() {
        RowsError::Session(error) => {
            assert_eq!((error.kind, error.server.unwrap().sqlstate.as_str()), (ErrorKind::Target, "22012"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_another_shape_are_named() {
    let (script, spec) = answering();
    let mut bytes = answer()[..3].concat();
    bytes.extend(message(b'D', b"\0\x02\0\0\0\x01x\0\0\0\x08\0\0\0\0\0\0\0\x07"));
    script.write(bytes);
    match rows_of(connect(&spec)).unwrap_err() {
        RowsError::Row { row, error } => {
            assert_eq!((row, error.to_string()), (1, "a value of 8 bytes in place of 4 in column 0".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    script.write(vec![b'D', 4, 0, 0, 1]);
    match rows_of(connect(&spec)).unwrap_err() {
        RowsError::Session(error) => assert!(error.found.unwrap().contains("67108865 bytes")),
        other => panic!("{other:?}"),
    }
}
