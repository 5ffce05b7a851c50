//! Where the core puts keys of partitions by hash: to be compared with the server's own answer before the first row.

use headrace_transform::partition::Method;
use headrace_types::{ColumnType, CoreError, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::key_column::parse_value;
use crate::routing::hash_of;
use crate::spec::HashSpec;

/// Which keys, and how their column hashes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashPlacesSpec {
    /// Type of the layout's column.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Partitions, and the type of the server's column.
    pub hash: HashSpec,
    /// Keys, as texts that the column accepts.
    pub keys: Vec<String>,
}

/// What the core says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HashPlaces {
    /// The remainder of each key.
    pub places: Vec<u32>,
}

/// Finds the places of keys.
///
/// # Errors
/// `Specification` for a type that has no such hash, no partitions at all, and texts that the type does not accept.
pub fn hash_places(spec: &HashPlacesSpec) -> Result<HashPlaces, CoreError> {
    let method = Method::Hash(hash_of(spec.column_type, &spec.hash)?);
    let mut places = Vec::with_capacity(spec.keys.len());
    let mut place = Vec::with_capacity(1);
    for key in &spec.keys {
        let value = parse_value(spec.column_type, key)?;
        match method.place(&value, &mut place) {
            true => places.extend(&place),
            false => return Err(CoreError::new(ErrorKind::Internal, "hash places: keys of another type")),
        }
    }
    Ok(HashPlaces { places })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn places(data_type: Value, keys: Value) -> Result<HashPlaces, CoreError> {
        let spec = json!({"type": data_type, "hash": {"modulus": 7, "key": "numeric"}, "keys": keys});
        hash_places(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn keys_have_the_places_that_rows_have() {
        let decimal = json!({"kind": "decimal", "precision": 9, "scale": 2});
        let found = places(decimal.clone(), json!(["1.50", "-0.01", "1.5"])).unwrap().places;
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], found[2]);
        assert_eq!(places(decimal.clone(), json!([])).unwrap().places, [0; 0]);
        assert!(places(decimal, json!(["x"])).is_err());
        assert!(places(json!({"kind": "date"}), json!([])).is_err());
    }
}
