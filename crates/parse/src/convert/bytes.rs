//! Hexadecimal text: UUIDs and byte strings.

use headrace_types::Rule;

use super::Convert;
use crate::raw::fields::Field;

fn nibble(character: u8) -> Option<u8> {
    (character as char).to_digit(16).map(|digit| digit as u8)
}

/// UUIDs: 32 hexadecimal digits in any case, hyphens as in 8-4-4-4-12 or none, braces optional.
pub struct Uuid;

impl Convert for Uuid {
    /// Sixteen bytes in text order.
    type Value = u128;

    fn convert(&self, field: Field<'_>) -> Result<u128, Rule> {
        let text = field.bytes();
        let text = match text {
            [b'{', inner @ .., b'}'] => inner,
            _ => text,
        };
        let hyphens = match text.len() {
            32 => false,
            36 => true,
            _ => return Err(Rule::BadUuid),
        };
        let mut number = 0_u128;
        for (index, &character) in text.iter().enumerate() {
            if hyphens && matches!(index, 8 | 13 | 18 | 23) {
                if character != b'-' {
                    return Err(Rule::BadUuid);
                }
                continue;
            }
            number = number << 4 | u128::from(nibble(character).ok_or(Rule::BadUuid)?);
        }
        Ok(u128::from_ne_bytes(number.to_be_bytes()))
    }
}

/// Appends the bytes of hexadecimal text, `\x` in front optional.
pub fn decode_hexadecimal(text: &[u8], out: &mut Vec<u8>) -> Result<(), Rule> {
    let digits = text.strip_prefix(b"\\x").unwrap_or(text);
    if !digits.len().is_multiple_of(2) {
        return Err(Rule::BadBytes);
    }
    for pair in digits.chunks_exact(2) {
        match (nibble(pair[0]), nibble(pair[1])) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => return Err(Rule::BadBytes),
        }
    }
    Ok(())
}
