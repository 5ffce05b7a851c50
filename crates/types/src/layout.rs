//! Columns, types and dialect of a flat file, as the parser needs them.

use serde::{Deserialize, Serialize};

use crate::ColumnType;

/// One column of a layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name, unique in its layout.
    pub name: String,
    /// Type the text is converted to.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether an empty field is NULL (true) or a reject (false).
    pub nullable: bool,
}

/// How the rows of one file end. Found per file from its first row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowEnd {
    /// Line feed. A carriage return before it is data.
    #[default]
    Lf,
    /// Carriage return and line feed. A line feed alone ends a row as well.
    Crlf,
}

/// Dialect and columns of a flat file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// One ASCII character between fields.
    pub delimiter: char,
    /// One ASCII character that, as the first byte of a field, opens text in which delimiters and row ends are data; it
    /// stands there doubled where it is data itself. None when the files have no such fields.
    #[serde(default)]
    pub qualifier: Option<char>,
    /// Whether the delimiter also follows the last field of a row.
    #[serde(default)]
    pub trailing_delimiter: bool,
    /// Lines at the start of each file that hold no data.
    #[serde(default)]
    pub header_rows: u32,
    /// Field contents that mean NULL, besides the empty field.
    #[serde(default)]
    pub null_tokens: Vec<String>,
    /// Columns in file order.
    pub columns: Vec<Column>,
}

impl Layout {
    /// Whether the parser can read files of this layout; the text says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if !self.delimiter.is_ascii() || matches!(self.delimiter, '\n' | '\r' | '\0') {
            return Err(format!("delimiter {:?} is not one ASCII character other than NUL, CR and LF", self.delimiter));
        }
        if let Some(qualifier) = self.qualifier {
            // A letter, digit or blank would be the first byte of ordinary fields.
            if !qualifier.is_ascii()
                || qualifier.is_ascii_alphanumeric()
                || matches!(qualifier, '\n' | '\r' | '\0' | ' ')
            {
                return Err(format!(
                    "qualifier {qualifier:?} is not one ASCII character other than letters, digits, blank, NUL, CR and LF"
                ));
            }
            if qualifier == self.delimiter {
                return Err(format!("qualifier {qualifier:?} is the delimiter as well"));
            }
            if let Some(token) = self.null_tokens.iter().find(|token| token.starts_with(qualifier)) {
                return Err(format!(
                    "null token {token:?} begins with the qualifier, and qualified fields are never NULL"
                ));
            }
        }
        if self.columns.is_empty() {
            return Err("the layout has no columns".to_owned());
        }
        for (index, column) in self.columns.iter().enumerate() {
            if self.columns[..index].iter().any(|other| other.name == column.name) {
                return Err(format!("column name `{}` stands twice", column.name));
            }
            column.column_type.check().map_err(|text| format!("column `{}`: {text}", column.name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(delimiter: char, names: &[&str]) -> Layout {
        let columns = names
            .iter()
            .map(|name| Column { name: (*name).to_owned(), column_type: ColumnType::Int32, nullable: false })
            .collect();
        Layout { delimiter, qualifier: None, trailing_delimiter: false, header_rows: 0, null_tokens: vec![], columns }
    }

    #[test]
    fn impossible_layouts_are_refused() {
        assert!(layout('|', &["a", "b"]).check().is_ok());
        for bad in [layout('|', &[]), layout('|', &["a", "a"]), layout('é', &["a"]), layout('\n', &["a"])] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn qualifiers_that_cannot_be_told_from_other_bytes_are_refused() {
        let qualified = |qualifier| Layout { qualifier: Some(qualifier), ..layout('|', &["a"]) };
        for good in ['"', '\'', '`', '~', '\t', '\x02'] {
            assert_eq!(qualified(good).check(), Ok(()), "{good:?}");
        }
        for bad in ['|', '\n', '\r', '\0', ' ', 'a', 'Z', '0', '\u{201C}'] {
            assert!(qualified(bad).check().is_err_and(|text| text.starts_with("qualifier ")), "{bad:?}");
        }
        let with_token = Layout { null_tokens: vec!["\"\"".to_owned()], ..qualified('"') };
        assert!(with_token.check().is_err_and(|text| text.starts_with("null token ")));
    }

    #[test]
    fn the_qualifier_may_be_left_out() {
        let text = r#"{"delimiter":",","columns":[]}"#;
        assert_eq!(serde_json::from_str::<Layout>(text).map(|layout| layout.qualifier).ok(), Some(None));
        let text = r#"{"delimiter":",","qualifier":"\"","columns":[]}"#;
        assert_eq!(serde_json::from_str::<Layout>(text).map(|layout| layout.qualifier).ok(), Some(Some('"')));
    }
}
