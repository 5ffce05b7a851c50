//! What a database server says about an error, as it said it.

use serde::{Deserialize, Serialize};

/// The fields of an error or notice of a server; the names are those of PostgreSQL's protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFields {
    /// ERROR, FATAL, PANIC, WARNING, NOTICE, ...: never translated.
    pub severity: String,
    /// Five letters and digits.
    pub sqlstate: String,
    /// One line, in the server's language.
    pub message: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The server's own advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the server was doing, innermost first, one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Schema of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Constraint or unique index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Character of the statement, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}

impl ServerFields {
    /// Row of the COPY data that the error belongs to, from 1.
    ///
    /// The context says `COPY table, line 12` or `COPY table, line 12, column name`, translated to the server's language.
    /// The names in it may hold anything, so the English form is searched exactly; in other languages the number is the
    /// only one between two commas behind the name.
    pub fn copy_line(&self) -> Option<u64> {
        let context = self.context.as_deref()?;
        // At the start of a line: what stands elsewhere is a part of the row's data, or of a function.
        let starts = context.match_indices("COPY ").map(|(at, _)| at);
        let mut starts = starts.filter(|&at| at == 0 || context.as_bytes()[at - 1] == b'\n');
        let english = starts.find_map(|start| english_line(&context[start..]));
        english.or_else(|| context.lines().rev().find_map(other_line))
    }
}

fn english_line(context: &str) -> Option<u64> {
    const LABEL: &str = ", line ";
    context.match_indices(LABEL).find_map(|(at, _)| {
        let rest = &context[at + LABEL.len()..];
        let (number, rest) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len()));
        let ends = rest.is_empty() || rest.starts_with('\n') || rest.starts_with(", column ");
        if ends { number.parse().ok() } else { None }
    })
}

fn other_line(context: &str) -> Option<u64> {
    let mut parts = context.split([',', '、', '，']);
    parts.next().filter(|name| name.contains("COPY"))?;
    parts.find_map(|part| {
        let mut numbers = part.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
        let number = numbers.next()?.parse().ok();
        if numbers.next().is_none() { number } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_copy_is_found_in_any_language_and_beside_any_name() {
        for (context, line) in [
            ("COPY lineitem, line 12", Some(12)),
            ("COPY lineitem, line 12, column l_orderkey", Some(12)),
            ("COPY t, line 18446744073709551615", Some(u64::MAX)),
            ("COPY t, line 99999999999999999999", None),
            ("COPY x, line 7, line 12, column a", Some(12)),
            ("COPY x, line 12, column a, line 7", Some(12)),
            ("PL/pgSQL function f() line 3 at RAISE\nCOPY t, line 9", Some(9)),
            ("COPY t, line 9, column a: \"1, line 3\"\nSQL statement", Some(9)),
            ("JSON data, line 1: {\"a\": \"COPY t, line 3, column ...\nCOPY t, line 12, column a", Some(12)),
            ("JSON data, line 1: {\"COPY t, line 3\nCOPY t, line 12", Some(12)),
            ("SQL statement \"COPY t, line 3\"\nCOPY t, Zeile 12", Some(12)),
            ("COPY lineitem, Zeile 12, Spalte l_orderkey", Some(12)),
            ("COPY lineitem, ligne 12", Some(12)),
            ("lineitemのCOPY中、行 12、列 a", Some(12)),
            ("COPY lineitem, 12번째 줄, a 열", Some(12)),
            ("SQL function \"f\" statement 1", None),
            ("unnamed portal parameter $1 = '7, 8'", None),
            ("COPY t, line", None),
            ("", None),
        ] {
            let fields = ServerFields { context: Some(context.to_owned()), ..ServerFields::default() };
            assert_eq!(fields.copy_line(), line, "{context}");
        }
        assert_eq!(ServerFields::default().copy_line(), None);
    }
}
