//! Which place each row of a batch goes to: the stage of a stream between parsing and writing.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use headrace_transform::partition::{
    HashKey, HashPartitions, Key, Keys, ListPartitions, Method, OUTSIDE, Range, RangePartitions, Routed,
};
use headrace_types::{ColumnType, CoreError, ErrorKind, RowSchema};

use crate::key_column::parse_value;
use crate::sink::Placed;
use crate::spec::{FlowSpec, HashKind, HashSpec, MethodSpec, RangeSpec, RoutingSpec};

/// Most places: their numbers, and the memory of counts per batch, stay small.
const MOST_PLACES: u32 = 1 << 16;

/// Finds the places of rows; shared by all streams.
pub struct Router {
    column: usize,
    /// The column in front of the transforms that it is.
    field: usize,
    method: Method,
    count: u32,
}

impl Router {
    /// The router of a flow, if its rows have places.
    ///
    /// # Errors
    /// Those of [`Router::new`].
    pub fn of(flow: &FlowSpec) -> Result<Option<Router>, CoreError> {
        let Some(spec) = &flow.routing else { return Ok(None) };
        let (schema, fields) = flow.row_fields()?;
        Router::new(&schema, &fields, spec).map(Some)
    }

    /// A router for rows of `schema`. `fields`: of each column, the one in front of the transforms that it is.
    ///
    /// # Errors
    /// `Specification` for a column that these rows have not or whose type the method does not know, keys that the type does
    /// not accept, ranges or lists that overlap, and too many places.
    pub fn new(schema: &RowSchema, fields: &[Option<usize>], spec: &RoutingSpec) -> Result<Router, CoreError> {
        let name = &spec.column;
        let Some(column) = schema.index_of(name) else {
            return Err(refused(format!("the rows have no column `{name}`")));
        };
        let Some(field) = fields[column] else {
            // What would be rejected has no field.
            return Err(refused(format!("column `{name}` stands in no file")));
        };
        let column_type = schema.columns()[column].column_type;
        let (own, default) = (spec.method.places(), spec.default);
        let count = default.map_or(own, |place| own.max(place.saturating_add(1) as usize));
        let count = u32::try_from(count).ok().filter(|count| *count <= MOST_PLACES);
        let Some(count) = count else {
            return Err(refused(format!("more than {MOST_PLACES} partitions")));
        };
        if let Some(place) = default.filter(|place| *place as usize > own) {
            return Err(refused(format!("the default is place {place} behind {own} others")));
        }
        let method = match &spec.method {
            MethodSpec::Range(ranges) => {
                let ranges = ranges.iter().map(|range| range_of(column_type, range)).collect::<Result<Vec<_>, _>>()?;
                Method::Range(RangePartitions::new(&ranges, default).map_err(refused)?)
            }
            MethodSpec::List(lists) => Method::List(list_of(column_type, lists, default)?),
            MethodSpec::Hash(_) if default.is_some() => {
                return Err(refused("partitions by hash have no default".to_owned()));
            }
            MethodSpec::Hash(hash) => Method::Hash(hash_of(column_type, hash)?),
            MethodSpec::AllBut(_) if default.is_some() => {
                return Err(refused("rows that the destination places have no default".to_owned()));
            }
            MethodSpec::AllBut(keys) => Method::List(all_but(column_type, keys)?),
        };
        Ok(Router { column, field, method, count })
    }

    /// The column in front of the transforms that decides.
    pub fn field(&self) -> usize {
        self.field
    }

    /// Number of places.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The place of every row, [`OUTSIDE`] for rows that no partition takes.
    ///
    /// # Errors
    /// `Internal` for a batch of another layout.
    pub fn places(&self, batch: &RecordBatch, places: &mut Vec<u32>) -> Result<(), CoreError> {
        match self.method.place(batch.column(self.column), places) {
            true => Ok(()),
            false => Err(CoreError::new(ErrorKind::Internal, "routing: a batch of another layout")),
        }
    }

    /// The rows that some partition takes, and the numbers of the others. `by_place`: the rows of a place have to stand together,
    /// so that they may change their order; otherwise they keep it, and all of them are given place 0. `scratch` is memory
    /// for the places of a batch.
    ///
    /// # Errors
    /// `Internal` for a batch of another layout.
    pub fn route(
        &self,
        batch: RecordBatch,
        by_place: bool,
        scratch: &mut Vec<u32>,
    ) -> Result<(Option<Placed>, Vec<u32>), CoreError> {
        self.places(&batch, scratch)?;
        if !by_place {
            scratch.iter_mut().filter(|place| **place != OUTSIDE).for_each(|place| *place = 0);
        }
        match Routed::of(scratch, self.count) {
            Routed::Whole(place) => Ok((Some(Placed::whole(batch, place)), Vec::new())),
            Routed::Divided(division) if division.parts.is_empty() => Ok((None, division.outside)),
            Routed::Divided(division) => {
                let batch = division.gather(batch).map_err(|error| {
                    CoreError::new(ErrorKind::Internal, "routing: rows cannot be gathered").found(error.to_string())
                })?;
                Ok((Some(Placed { batch, parts: division.parts }), division.outside))
            }
        }
    }
}

impl MethodSpec {
    /// Places without that of the default.
    fn places(&self) -> usize {
        match self {
            MethodSpec::Range(ranges) => ranges.len(),
            MethodSpec::List(lists) => lists.len(),
            MethodSpec::Hash(hash) => hash.modulus as usize,
            MethodSpec::AllBut(_) => 1,
        }
    }
}

fn range_of(column_type: ColumnType, range: &RangeSpec) -> Result<Range, CoreError> {
    let key = |text: &Option<String>| text.as_ref().map(|text| key_of(column_type, text)).transpose();
    Ok(Range { minimum: key(&range.minimum)?, end: key(&range.end)? })
}

fn key_of(column_type: ColumnType, text: &str) -> Result<Key, CoreError> {
    let value = parse_value(column_type, text)?;
    Keys::of(&value).map(|keys| keys.at(0)).ok_or_else(|| refused(format!("values of {column_type} have no ranges")))
}

fn list_of(
    column_type: ColumnType,
    lists: &[Vec<Option<String>>],
    default: Option<u32>,
) -> Result<ListPartitions, CoreError> {
    let (mut keys, mut bytes, mut null) = (Vec::new(), Vec::new(), None);
    let mut seen = HashSet::new();
    for (list, place) in lists.iter().zip(0..) {
        for text in list {
            let value = text.as_ref().map(|text| list_value(column_type, text)).transpose()?;
            if !seen.insert(value.clone()) {
                let text = text.as_deref().unwrap_or("NULL");
                return Err(refused("a value is in two lists, or twice in one".to_owned()).found(text));
            }
            match value {
                None => null = Some(place),
                Some(ListValue::Key(key)) => keys.push((key, place)),
                Some(ListValue::Bytes(value)) => bytes.push((value, place)),
            }
        }
    }
    Ok(match is_bytes(column_type) {
        true => ListPartitions::of_bytes(bytes, null, default),
        false => ListPartitions::of_keys(keys, null, default),
    })
}

/// Everything goes to place 0 but rows with these texts as keys.
fn all_but(column_type: ColumnType, keys: &[Option<String>]) -> Result<ListPartitions, CoreError> {
    use ColumnType::*;
    if !matches!(column_type, String | Varchar { .. } | Char { .. }) {
        return Err(refused(format!("keys of {column_type} are no texts")));
    }
    let mut null = 0;
    let mut bytes = Vec::new();
    for key in keys {
        match key {
            None => null = OUTSIDE,
            Some(text) => bytes.push((text.clone().into_bytes(), OUTSIDE)),
        }
    }
    Ok(ListPartitions::of_bytes(bytes, Some(null), Some(0)))
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum ListValue {
    Key(Key),
    Bytes(Vec<u8>),
}

/// Whether lists of the type are compared byte by byte.
fn is_bytes(column_type: ColumnType) -> bool {
    use ColumnType::*;
    matches!(column_type, String | Varchar { .. } | Char { .. } | Uuid)
}

fn list_value(column_type: ColumnType, text: &str) -> Result<ListValue, CoreError> {
    use ColumnType::*;
    match column_type {
        String | Varchar { .. } => Ok(ListValue::Bytes(text.into())),
        // Nor does the parser keep trailing blanks, which mean nothing.
        Char { .. } => Ok(ListValue::Bytes(text.trim_end_matches(' ').into())),
        Bool | Uuid | Int16 | Int32 | Int64 | Decimal { .. } | Date | Time | Timestamp | TimestampTz => {
            let value: ArrayRef = parse_value(column_type, text)?;
            let identifier = value.as_fixed_size_binary_opt().map(|array| ListValue::Bytes(array.value(0).to_vec()));
            let truth = || value.as_boolean_opt().map(|array| ListValue::Key(array.value(0).into()));
            let key = || Keys::of(&value).map(|keys| ListValue::Key(keys.at(0)));
            identifier.or_else(truth).or_else(key).ok_or_else(|| unlisted(column_type))
        }
        Float32 | Float64 | Bytes | Json => Err(unlisted(column_type)),
    }
}

fn unlisted(column_type: ColumnType) -> CoreError {
    refused(format!("values of {column_type} cannot be listed"))
}

/// Partitions by hash of a column.
///
/// # Errors
/// `Specification` for a type whose values have no such hash, and no partitions at all.
pub fn hash_of(column_type: ColumnType, hash: &HashSpec) -> Result<HashPartitions, CoreError> {
    use ColumnType::*;
    let key = match (hash.key, column_type) {
        (HashKind::Integer, Int16 | Int32 | Int64 | Time | Decimal { scale: 0, .. }) => Some(HashKey::Integer),
        (HashKind::Numeric, Int16 | Int32 | Int64) => Some(HashKey::Numeric { scale: 0 }),
        (HashKind::Numeric, Decimal { scale, .. }) => Some(HashKey::Numeric { scale }),
        (HashKind::Float, Float32 | Float64) => Some(HashKey::Float),
        (HashKind::Bool, Bool) => Some(HashKey::Bool),
        (HashKind::Date, Date) => Some(HashKey::Date),
        (HashKind::Timestamp, Timestamp | TimestampTz) => Some(HashKey::Timestamp),
        (HashKind::Bytes, String | Varchar { .. } | Char { .. } | Bytes | Uuid) => Some(HashKey::Bytes),
        (HashKind::Char, String | Varchar { .. } | Char { .. }) => Some(HashKey::Char),
        _ => None,
    };
    let Some(key) = key else {
        return Err(refused(format!("values of {column_type} have no hash of kind {:?}", hash.key)));
    };
    HashPartitions::new(key, hash.modulus).ok_or_else(|| refused("no partitions".to_owned()))
}

fn refused(text: String) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("routing: {text}"))
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, Layout};
    use serde_json::{Value, json};

    use super::*;
    use crate::line_parser::LineParser;

    /// Places of the texts of one nullable column; -1 outside.
    fn places(column_type: Value, method: Value, default: Option<u32>, texts: &str) -> Vec<i64> {
        let column_type = serde_json::from_value(column_type).unwrap();
        let columns = vec![Column::new("number", ColumnType::Int32, false)];
        let mut layout = Layout { delimiter: "|".to_owned(), qualifier: Some('"'), columns, ..Layout::default() };
        layout.columns.push(Column::new("key", column_type, true));
        let spec = serde_json::from_value(json!({"column": "key", "method": method, "default": default})).unwrap();
        let router = Router::new(&RowSchema::of(&layout), &[Some(0), Some(1)], &spec).unwrap();
        let text: String = texts.split(',').map(|text| format!("1|{text}\n")).collect();
        let batch = LineParser::new(&layout).unwrap().rows(text.as_bytes()).unwrap().remove(0);
        let mut places = Vec::new();
        router.places(&batch, &mut places).unwrap();
        assert!(places.iter().all(|place| *place == OUTSIDE || *place < router.count()));
        places.into_iter().map(|place| if place == OUTSIDE { -1 } else { place.into() }).collect()
    }

    #[test]
    fn keys_are_read_as_the_column_reads_them() {
        let range = |minimum: Option<&str>, end: Option<&str>| json!({"minimum": minimum, "end": end});
        let ranges = json!({"range": [range(Some("1.5"), Some("3")), range(None, Some("-0.05"))]});
        let decimal = json!({"kind": "decimal", "precision": 9, "scale": 2});
        assert_eq!(
            places(decimal.clone(), ranges.clone(), None, "1.5,2.99,3,-0.05,-0.06,,"),
            [0, 0, -1, -1, 1, -1, -1]
        );
        assert_eq!(places(decimal.clone(), ranges, Some(2), "1.5,9,"), [0, 2, 2]);
        let lists = json!({"list": [["1.50", "7"], ["-0", null]]});
        assert_eq!(places(decimal, lists, None, "1.5,7.00,0,0.01,"), [0, 0, 1, -1, 1]);
        let kind = |kind: &str| json!({"kind": kind});
        let days = json!({"range": [range(Some("2024-01-01"), Some("2024-02-01"))]});
        assert_eq!(places(kind("date"), days, None, "2024-01-01,2024-01-31,2024-02-01"), [0, 0, -1]);
        let zones = json!({"list": [["2024-01-01 00:00:00+00:00"]]});
        assert_eq!(places(kind("timestamptz"), zones, None, "2024-01-01 01:00:00+01:00"), [0]);
        assert_eq!(places(kind("time"), json!({"list": [["12:00:00"]]}), None, "12:00:00.0,12:00:01"), [0, -1]);
        assert_eq!(places(kind("bool"), json!({"list": [["true"], ["no"]]}), None, "t,0,"), [0, 1, -1]);
        let identifiers = json!({"list": [["00000000-0000-0000-0000-00000000000A"]]});
        assert_eq!(places(kind("uuid"), identifiers, None, "0000000000000000000000000000000a"), [0]);
        let texts = json!({"list": [["FR", "", "a|b\n"], [null], ["DE "]]});
        assert_eq!(places(kind("string"), texts.clone(), None, "FR,\"\",\"a|b\n\",,DE ,DE"), [0, 0, 0, 1, 2, -1]);
        let char = json!({"kind": "char", "length": 5});
        assert_eq!(places(char, texts, None, "FR  ,\"\",DE"), [0, 0, 2], "trailing blanks mean nothing");
    }

    #[test]
    fn keys_that_no_partition_takes_are_told_byte_by_byte() {
        let text = "FR,fr,XX,xx,,\"\",FR ";
        let kind = |kind: &str| json!({"kind": kind});
        let keys = json!({"all_but": ["XX", "fr", "FR "]});
        assert_eq!(places(kind("string"), keys, None, text), [0, -1, -1, 0, 0, 0, -1]);
        let with_null = json!({"all_but": [null, ""]});
        assert_eq!(places(kind("string"), with_null, None, text), [0, 0, 0, 0, -1, -1, 0]);
        let char = json!({"kind": "char", "length": 2});
        // A longer key is in the file all the same: such a row is a reject for another reason.
        assert_eq!(places(char, json!({"all_but": ["FR", "much longer"]}), None, "FR ,XX"), [-1, 0]);
        assert_eq!(places(kind("string"), json!({"all_but": []}), None, text), [0; 7]);
        assert!(all_but(ColumnType::Int32, &[]).is_err());
    }

    #[test]
    fn hashes_are_those_of_the_server_type() {
        let hash = |key: &str| json!({"hash": {"modulus": 1000, "key": key}});
        let place = |kind: Value, key: &str, text: &str| places(kind, hash(key), None, text);
        let int = json!({"kind": "int64"});
        let whole = json!({"kind": "decimal", "precision": 9, "scale": 0});
        assert_eq!(place(int.clone(), "integer", "42,"), place(whole.clone(), "integer", "42,"));
        assert_eq!(place(int.clone(), "numeric", "42"), place(whole, "numeric", "42"));
        assert_ne!(place(int.clone(), "numeric", "42"), place(int.clone(), "integer", "42"));
        assert_eq!(place(int, "integer", ""), [0], "a row without a key");
        let string = json!({"kind": "string"});
        assert_eq!(place(string.clone(), "char", "a  "), place(string.clone(), "char", "a"));
        assert_ne!(place(string.clone(), "bytes", "a  "), place(string, "bytes", "a"));
    }

    #[test]
    fn hashes_of_another_type_are_refused() {
        use HashKind::*;
        let refused = |key, column_type| hash_of(column_type, &HashSpec { modulus: 2, key }).is_err();
        assert!(refused(Integer, ColumnType::Decimal { precision: 5, scale: 1 }));
        assert!(refused(Timestamp, ColumnType::Date), "days are no microseconds");
        assert!(refused(Date, ColumnType::Timestamp) && refused(Float, ColumnType::Int32));
        assert!(
            refused(Bytes, ColumnType::Json) && refused(Char, ColumnType::Bytes) && refused(Bool, ColumnType::Int16)
        );
        assert!(list_value(ColumnType::Float64, "1").is_err() && list_value(ColumnType::Json, "1").is_err());
    }
}
