//! A hash of a text, by which people recognise it: xxh3-64, as `xxhsum -H3` tells it of a file.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Digits of a hash.
const DIGITS: usize = 16;

/// The hash of a text; as text 16 hexadecimal digits, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextHash(pub u64);

impl fmt::Display for TextHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:0DIGITS$x}", self.0)
    }
}

impl Serialize for TextHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TextHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = u64::from_str_radix(&text, 16).map(TextHash);
        let exact = number.ok().filter(|hash| hash.to_string() == text);
        exact.ok_or_else(|| de::Error::custom(format!("`{text}` is not the hash of a text")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_told_in_16_digits() {
        assert_eq!(serde_json::to_string(&TextHash(0xAB)).unwrap(), "\"00000000000000ab\"");
        for hash in [TextHash(0), TextHash(0xAB), TextHash(u64::MAX)] {
            let text = serde_json::to_string(&hash).unwrap();
            assert_eq!(serde_json::from_str::<TextHash>(&text).unwrap(), hash);
        }
        for bad in ["", "ab", "00000000000000AB", "+0000000000000ab", "0000000000000000ab", "00000000000000zz"] {
            assert!(serde_json::from_str::<TextHash>(&format!("\"{bad}\"")).is_err(), "{bad}");
        }
    }
}
