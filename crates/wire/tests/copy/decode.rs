//! The rows of a stream as the server's receive functions read them, plainly: to text.

use headrace_wire::postgres::{CopyEncoder, Form};

/// Rows of a stream as text; NULL is `None`.
pub fn rows(stream: &[u8], forms: &[Form]) -> Vec<Vec<Option<String>>> {
    let mut rest = stream.strip_prefix(CopyEncoder::header()).expect("the header");
    let mut rows = Vec::new();
    loop {
        let columns = i16::from_be_bytes(take(&mut rest));
        if columns == -1 {
            assert!(rest.is_empty(), "bytes behind the trailer");
            return rows;
        }
        assert_eq!(columns as usize, forms.len());
        rows.push(forms.iter().map(|form| value(&mut rest, *form)).collect());
    }
}

fn value(rest: &mut &[u8], form: Form) -> Option<String> {
    let length = i32::from_be_bytes(take(rest));
    if length == -1 {
        return None;
    }
    let (bytes, behind) = rest.split_at(length as usize);
    *rest = behind;
    Some(match form {
        Form::Int2 => i16::from_be_bytes(whole(bytes)).to_string(),
        Form::Int4 => i32::from_be_bytes(whole(bytes)).to_string(),
        Form::Int8 => i64::from_be_bytes(whole(bytes)).to_string(),
        Form::Float4 => f32::from_be_bytes(whole(bytes)).to_string(),
        Form::Float8 => f64::from_be_bytes(whole(bytes)).to_string(),
        Form::Numeric => numeric(bytes),
        Form::Bool => (if whole::<1>(bytes) == [1] { "t" } else { "f" }).to_owned(),
        // Days and microseconds since 1970, as the arrays have them.
        Form::Date => (i32::from_be_bytes(whole(bytes)) + 10_957).to_string(),
        Form::Time => i64::from_be_bytes(whole(bytes)).to_string(),
        Form::Timestamp | Form::Timestamptz => (i64::from_be_bytes(whole(bytes)) + 946_684_800_000_000).to_string(),
        Form::Text | Form::Json => str::from_utf8(bytes).unwrap().to_owned(),
        Form::Jsonb => {
            assert_eq!(bytes[0], 1, "version");
            str::from_utf8(&bytes[1..]).unwrap().to_owned()
        }
        Form::Bytea | Form::Uuid => format!("{bytes:02x?}"),
    })
}

/// `numeric_recv`, with the demand that nothing is left to strip.
fn numeric(mut bytes: &[u8]) -> String {
    let digits = i16::from_be_bytes(take(&mut bytes));
    let weight = i16::from_be_bytes(take(&mut bytes));
    let sign = u16::from_be_bytes(take(&mut bytes));
    let scale = i16::from_be_bytes(take(&mut bytes));
    let groups: Vec<_> = (0..digits).map(|_| i16::from_be_bytes(take(&mut bytes))).collect();
    assert!(bytes.is_empty(), "bytes behind the digits");
    assert!(groups.first() != Some(&0) && groups.last() != Some(&0), "zeros at an end: {groups:?}");
    assert!(!groups.is_empty() || (weight, sign) == (0, 0), "zero has no weight and no sign");
    let group = |place: i16| usize::try_from(weight - place).ok().and_then(|at| groups.get(at)).unwrap_or(&0);
    let whole: String = (0..=weight.max(0)).rev().map(|place| format!("{:04}", group(place))).collect();
    let places = (scale + 3) / 4;
    let mut fraction: String = (1..=places).map(|place| format!("{:04}", group(-place))).collect();
    assert!(fraction[scale as usize..].chars().all(|digit| digit == '0'), "digits behind the scale");
    assert!(groups.len() as i16 - 1 - weight <= places, "groups behind the scale");
    fraction.truncate(scale as usize);
    let sign = if sign == 0x4000 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    let whole = whole.trim_start_matches('0');
    format!("{sign}{}{point}{fraction}", if whole.is_empty() { "0" } else { whole })
}

fn take<const BYTES: usize>(rest: &mut &[u8]) -> [u8; BYTES] {
    let (taken, behind) = rest.split_first_chunk().expect("the stream ends inside a row");
    *rest = behind;
    *taken
}

fn whole<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    bytes.try_into().expect("a value of another width")
}
