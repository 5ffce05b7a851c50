//! Columns, types and dialect of a flat file, as the parser needs them.

use serde::{Deserialize, Serialize};

use crate::{ColumnType, Encoding, Format, MadeColumn, Rule, Unmappable};

/// Longest text that ends fields or rows, or begins a comment: bytes as the parser sees them. That is room for 16 characters of any
/// kind, which is what packages may have.
pub const MAX_TOKEN_BYTES: usize = 64;

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
    /// What stands between this column and the next; if none, the layout's delimiter.
    #[serde(default)]
    pub delimiter: Option<String>,
    /// Whether the layout's qualifier means anything in this column.
    #[serde(default = "yes")]
    pub qualified: bool,
    /// Which blanks at the ends of a field are no text.
    #[serde(default)]
    pub trim: Trim,
    /// What a field without a byte stands for.
    #[serde(default)]
    pub empty: EmptyField,
    /// Whether two qualifiers with nothing between are NULL, and not the empty text.
    #[serde(default)]
    pub qualified_empty_is_null: bool,
    /// Whether null tokens are NULL between qualifiers, too.
    #[serde(default)]
    pub qualified_null_tokens: bool,
    /// Field contents that mean NULL; if none are given, those of the layout.
    #[serde(default)]
    pub null_tokens: Option<Vec<String>>,
    /// How its texts are written; none: as every text of its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Where it stands in a row; none where delimiters say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What becomes of values that are none of its type.
    #[serde(default)]
    pub on_error: Disposition,
    /// What becomes of values that are too long or too exact for it.
    #[serde(default)]
    pub on_truncation: Disposition,
}

/// What becomes of a row with a value that breaks a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// It is a reject.
    #[default]
    Redirect,
    /// It is one, and the flow fails.
    Fail,
    /// It is loaded, with NULL or a part of the value in its place.
    Ignore,
}

/// Which blanks and tabs at the ends of a field are no text. Between qualifiers they always are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trim {
    /// None.
    #[default]
    None,
    /// Those before it.
    Left,
    /// Those behind it.
    Right,
    /// Those at both ends.
    Both,
}

/// What a field without a byte stands for, unless it stands between qualifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmptyField {
    /// NULL.
    #[default]
    Null,
    /// The empty text; NULL in columns of other types.
    Text,
    /// What this text stands for.
    Value(String),
}

fn yes() -> bool {
    true
}

impl Column {
    /// A column that is delimited and qualified as the layout says.
    pub fn new(name: impl Into<String>, column_type: ColumnType, nullable: bool) -> Self {
        Column {
            name: name.into(),
            column_type,
            nullable,
            delimiter: None,
            qualified: true,
            trim: Trim::None,
            empty: EmptyField::Null,
            qualified_empty_is_null: false,
            qualified_null_tokens: false,
            null_tokens: None,
            format: None,
            place: None,
            on_error: Disposition::Redirect,
            on_truncation: Disposition::Redirect,
        }
    }

    /// What becomes of a row whose value of the column breaks the rule.
    pub fn disposition(&self, rule: Rule) -> Disposition {
        match rule {
            _ if !rule.is_of_values() => Disposition::Redirect,
            _ if rule.is_truncation() => self.on_truncation,
            _ => self.on_error,
        }
    }
}

/// Where a field stands in its row, in the layout's [`WidthUnit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Bytes or characters of the row before it.
    pub start: u32,
    /// Its own; none: all up to the row end.
    pub width: Option<u32>,
}

impl Place {
    /// What stands before the byte or character behind it; the greatest number where it goes on to the row end.
    pub fn end(self) -> u32 {
        self.width.map_or(u32::MAX, |width| self.start.saturating_add(width))
    }
}

/// What tells one field of a row from the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutShape {
    /// Delimiters.
    #[default]
    Delimited,
    /// Their places in the row.
    FixedWidth,
    /// The same, and the last one goes on to the row end.
    RaggedRight,
}

/// What places and widths count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WidthUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// Characters: code points.
    Characters,
}

/// How the rows of one file end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowEnd {
    /// Line feed. A carriage return before it is data.
    #[default]
    Lf,
    /// Line feed, or carriage return and line feed.
    Either,
    /// As `Either`, but a row that ends with carriage return and line feed is a reject.
    OnlyLf,
    /// As `Either`, but a row that ends with a line feed alone is a reject.
    OnlyCrlf,
    /// This text and nothing else.
    Exactly(String),
    /// Not at all: a row has so many bytes.
    Every(u32),
}

impl RowEnd {
    /// Whether a carriage return before a line feed is part of the row end.
    pub fn takes_carriage_return(&self) -> bool {
        matches!(self, RowEnd::Either | RowEnd::OnlyLf | RowEnd::OnlyCrlf)
    }

    /// Whether rows may only end with (true) or without (false) carriage return; none if that does not matter.
    pub fn wants_carriage_return(&self) -> Option<bool> {
        match self {
            RowEnd::OnlyLf => Some(false),
            RowEnd::OnlyCrlf => Some(true),
            RowEnd::Lf | RowEnd::Either | RowEnd::Exactly(_) | RowEnd::Every(_) => None,
        }
    }
}

/// What happens to rows that end otherwise than the first row of their file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MixedRowEnds {
    /// They are rows like the others.
    #[default]
    Accept,
    /// They are rejects.
    Reject,
}

/// What the layout says about row ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowEnds {
    /// `Either`, or one of the two of them: that of the first row.
    #[default]
    Auto,
    /// This text in every file, and nothing else.
    Exactly(String),
    /// Not at all: all rows are equally long.
    None,
}

/// What a row end is inside a field that is not the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowEndInFields {
    /// The end of the row, which then has too few fields.
    #[default]
    EndsRow,
    /// Data: only the last column ends at a row end.
    Data,
}

/// What letters behind an escape character mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EscapeCodes {
    /// Themselves.
    #[default]
    None,
    /// As MySQL writes them: `0 b n r t Z`.
    Mysql,
    /// As COPY of PostgreSQL writes them: `b f n r t v`, octal and hexadecimal numbers.
    Postgres,
}

/// What becomes of fields with a qualifier that opens none, closes none and is not doubled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrayQualifiers {
    /// Their rows are rejects.
    #[default]
    Reject,
    /// It is text. A field with text after its closing qualifier is all that is in the file, and ends at the next delimiter or row end.
    Keep,
    /// It is data. A qualifier closes a field only before a delimiter or a row end.
    Lenient,
}

/// What happens to rows without a byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlankRows {
    /// They are skipped, and counted; but not where a row has one column and no delimiter: there they are rows.
    #[default]
    Skip,
    /// They are rejects.
    Reject,
    /// They are rows whose first field is empty.
    Keep,
}

/// What happens to rows with fewer fields than columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShortRows {
    /// They are rejects.
    #[default]
    Reject,
    /// The missing fields are empty.
    Fill,
}

/// What happens to rows with more fields than columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtraFields {
    /// They are rejects.
    #[default]
    Reject,
    /// The last column of such a row is all text from its first byte to the row end, as it is in the file.
    Keep,
}

/// What the first row of a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Header {
    /// Data.
    #[default]
    None,
    /// No data, whatever it says.
    Skip,
    /// The names of the columns, in their order.
    Check,
    /// The names of the columns; their order is that of the file's fields.
    ByName,
}

/// What happens to fields whose name, in a header, is not that of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OtherColumns {
    /// The file is refused.
    #[default]
    Refuse,
    /// Nothing is made of them.
    Ignore,
}

/// Dialect and columns of a flat file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// How bytes stand for characters.
    #[serde(default)]
    pub encoding: Encoding,
    /// What happens to bytes that are no character.
    #[serde(default)]
    pub unmappable: Unmappable,
    /// What tells one field from the next.
    #[serde(default)]
    pub shape: LayoutShape,
    /// What places and widths of columns count.
    #[serde(default)]
    pub width_unit: WidthUnit,
    /// What stands between two fields: one or more characters; nothing where columns have places.
    #[serde(default)]
    pub delimiter: String,
    /// How rows end.
    #[serde(default)]
    pub row_end: RowEnds,
    /// What happens to rows that end otherwise than the first one.
    #[serde(default)]
    pub mixed_row_ends: MixedRowEnds,
    /// What a row end is inside of fields.
    #[serde(default)]
    pub row_end_in_fields: RowEndInFields,
    /// One ASCII character that, as the first byte of a field, opens text in which delimiters and row ends are data; it
    /// stands there doubled where it is data itself. None when the files have no such fields.
    #[serde(default)]
    pub qualifier: Option<char>,
    /// Whether blanks may stand before an opening and behind a closing qualifier; they are no text.
    #[serde(default)]
    pub blanks_around_qualifier: bool,
    /// What becomes of fields with a qualifier in another place.
    #[serde(default)]
    pub stray_qualifiers: StrayQualifiers,
    /// One ASCII character that makes the delimiter, row end, qualifier or character behind it data.
    #[serde(default)]
    pub escape: Option<char>,
    /// What letters behind an escape character mean.
    #[serde(default)]
    pub escape_codes: EscapeCodes,
    /// Rows that begin with this text are no data.
    #[serde(default)]
    pub comment: Option<String>,
    /// What happens to rows without a byte.
    #[serde(default)]
    pub blank_rows: BlankRows,
    /// What happens to rows with fewer fields than columns.
    #[serde(default)]
    pub short_rows: ShortRows,
    /// What happens to rows with more fields than columns.
    #[serde(default)]
    pub extra_fields: ExtraFields,
    /// Whether the delimiter also follows the last field of a row.
    #[serde(default)]
    pub trailing_delimiter: bool,
    /// Lines at the start of each file that are no rows, whatever stands in them.
    #[serde(default)]
    pub skip_lines: u32,
    /// What the first row behind them is.
    #[serde(default)]
    pub header: Header,
    /// What happens to fields that a header calls otherwise than any column.
    #[serde(default)]
    pub other_columns: OtherColumns,
    /// Rows at the end of each file that hold no data.
    #[serde(default)]
    pub footer_rows: u32,
    /// Field contents that mean NULL, besides the empty field.
    #[serde(default)]
    pub null_tokens: Vec<String>,
    /// Columns in file order.
    pub columns: Vec<Column>,
    /// Columns that are made, and not read. In batches they stand behind the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeColumn>,
}

impl Layout {
    /// Names and types of the columns in batches: those of the file, and behind them those that are made.
    pub fn all_columns(&self) -> impl Iterator<Item = (&str, ColumnType)> {
        let read = self.columns.iter().map(|column| (column.name.as_str(), column.column_type));
        read.chain(self.made.iter().map(|column| (column.name.as_str(), column.from.column_type())))
    }

    /// Place of a column among all.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.all_columns().position(|(own, _)| own == name)
    }

    /// A text of the layout as it stands in files, and as the parser sees it.
    pub fn encoded(&self, text: &str) -> Vec<u8> {
        // `check` refuses what the encoding lacks.
        self.encoding.encode(text).unwrap_or_else(|| text.as_bytes().to_vec())
    }

    /// Whether every part of this layout is one that the parser takes; the text says what is wrong. That they do not mean two things
    /// together says the parser, which knows the row ends of a file.
    pub fn check(&self) -> Result<(), String> {
        if self.shape != LayoutShape::Delimited || self.columns.iter().any(|column| column.place.is_some()) {
            self.check_places()?;
        }
        self.check_tokens()?;
        if self.row_end == RowEnds::None && self.shape != LayoutShape::FixedWidth {
            return Err("rows without row end have a fixed width".to_owned());
        }
        if self.mixed_row_ends == MixedRowEnds::Reject && self.row_end != RowEnds::Auto {
            return Err("a row end of its own leaves no other to reject".to_owned());
        }
        self.check_characters()?;
        self.check_encoding()?;
        if self.columns.is_empty() {
            return Err("the layout has no columns".to_owned());
        }
        for (index, column) in self.columns.iter().enumerate() {
            if self.columns[..index].iter().any(|other| other.name == column.name) {
                return Err(format!("column name `{}` stands twice", column.name));
            }
            let checked = column.column_type.check().and_then(|()| self.check_format(column));
            checked.map_err(|text| format!("column `{}`: {text}", column.name))?;
            if column.on_error == Disposition::Ignore && !column.nullable {
                return Err(format!(
                    "column `{}`: an ignored value is NULL, and the column is not nullable",
                    column.name
                ));
            }
        }
        for (index, column) in self.made.iter().enumerate() {
            let others = self.made[..index].iter().map(|other| &other.name);
            if self.columns.iter().map(|other| &other.name).chain(others).any(|name| *name == column.name) {
                return Err(format!("column name `{}` stands twice", column.name));
            }
            if column.from.lacks_run() {
                return Err(format!("column `{}`: nobody has said which run this is", column.name));
            }
        }
        if self.header == Header::ByName && self.columns.iter().any(|column| column.delimiter.is_some()) {
            return Err("columns with delimiters of their own stand in the order of the layout".to_owned());
        }
        let last = self.columns.last().map(|column| column.column_type);
        if self.extra_fields == ExtraFields::Keep && !last.is_some_and(ColumnType::is_text) {
            return Err("the last column keeps extra fields and is no text".to_owned());
        }
        if self.extra_fields == ExtraFields::Keep && self.trailing_delimiter {
            return Err("with a trailing delimiter nothing tells extra fields from it".to_owned());
        }
        if self.row_end_in_fields == RowEndInFields::Data {
            if self.trailing_delimiter {
                return Err("row ends are data in fields: a trailing delimiter belongs to `row_end`".to_owned());
            }
            if self.short_rows == ShortRows::Fill {
                return Err("row ends are data in fields: there are no short rows to fill".to_owned());
            }
            if self.extra_fields == ExtraFields::Keep {
                return Err("row ends are data in fields: there are no extra fields to keep".to_owned());
            }
        }
        Ok(())
    }

    /// What ends fields and rows, or begins a comment.
    fn check_tokens(&self) -> Result<(), String> {
        let own = self.columns.iter().filter_map(|column| column.delimiter.as_ref());
        let delimiters = own.chain([&self.delimiter]).filter(|_| self.shape == LayoutShape::Delimited);
        if let Some(delimiter) =
            delimiters.clone().find(|text| text.contains('\0') || matches!(text.as_str(), "\n" | "\r"))
        {
            return Err(format!("delimiter {delimiter:?} is a row end, or holds NUL"));
        }
        let row_end = if let RowEnds::Exactly(text) = &self.row_end { Some(text) } else { None };
        let others = row_end.map(|text| ("row end", text)).into_iter();
        let others = others.chain(self.comment.as_ref().map(|text| ("comment mark", text)));
        for (name, text) in delimiters.map(|text| ("delimiter", text)).chain(others) {
            if !(1..=MAX_TOKEN_BYTES).contains(&self.encoded(text).len()) {
                return Err(format!("{name} {text:?} is not 1 to {MAX_TOKEN_BYTES} bytes long"));
            }
        }
        Ok(())
    }

    /// The format of a column, and that its marks are no delimiters.
    fn check_format(&self, column: &Column) -> Result<(), String> {
        let Some(format) = &column.format else { return Ok(()) };
        format.check(column.column_type)?;
        if self.shape != LayoutShape::Delimited {
            return Ok(());
        }
        let delimiter = column.delimiter.as_ref().unwrap_or(&self.delimiter);
        let is_told_apart = self.escape.is_some() || (self.qualifier.is_some() && column.qualified);
        // With row ends in fields the last column has no delimiter.
        let is_last = self.columns.last().is_some_and(|last| last.name == column.name);
        let is_told_apart = is_told_apart || (is_last && self.row_end_in_fields == RowEndInFields::Data);
        match format.texts(column.column_type).iter().find(|text| text.contains(delimiter.as_str())) {
            Some(text) if !is_told_apart => Err(format!("its format holds the delimiter: {text:?}")),
            _ => Ok(()),
        }
    }

    /// Every text of the layout stands in files.
    fn check_encoding(&self) -> Result<(), String> {
        let named = matches!(self.header, Header::Check | Header::ByName);
        let of_column = |column: &Column| {
            let formats = column.format.iter().flat_map(|format| format.texts(column.column_type));
            let tokens = column.null_tokens.iter().flatten().cloned();
            let name = named.then(|| column.name.clone());
            formats.chain(tokens).chain(name).chain(column.delimiter.clone()).collect::<Vec<_>>()
        };
        let row_end = if let RowEnds::Exactly(text) = &self.row_end { Some(text.clone()) } else { None };
        let of_layout = [self.delimiter.clone()].into_iter().chain(row_end).chain(self.comment.clone());
        let texts = of_layout.chain(self.null_tokens.iter().cloned()).chain(self.columns.iter().flat_map(of_column));
        for text in texts {
            if let Some(character) = self.encoding.lacks(&text) {
                return Err(format!("{} lacks {character:?} of {text:?}", self.encoding));
            }
        }
        Ok(())
    }

    /// Qualifier and escape.
    fn check_characters(&self) -> Result<(), String> {
        for (name, character) in [("qualifier", self.qualifier), ("escape", self.escape)] {
            let Some(character) = character else { continue };
            // A letter, digit or blank would be the first byte of ordinary fields.
            let is_ordinary = character.is_ascii_alphanumeric() || matches!(character, '\n' | '\r' | '\0' | ' ');
            if !character.is_ascii() || is_ordinary {
                return Err(format!(
                    "{name} {character:?} is not one ASCII character other than letters, digits, blank, NUL, CR and LF"
                ));
            }
            if self.delimiter.contains(character) {
                return Err(format!("{name} {character:?} is the delimiter as well"));
            }
        }
        let is_cut = |column: &&Column| matches!(column.trim, Trim::Right | Trim::Both);
        if let Some(column) = self.columns.iter().find(is_cut).filter(|_| self.escape.is_some()) {
            return Err(format!(
                "column `{}` drops blanks behind its text, and an escape may make them text",
                column.name
            ));
        }
        if self.qualifier.is_some() && self.qualifier == self.escape {
            return Err("the qualifier is the escape as well: without an escape it stands doubled".to_owned());
        }
        let tokens = self.columns.iter().filter_map(|column| column.null_tokens.as_ref()).chain([&self.null_tokens]);
        if let Some(qualifier) = self.qualifier
            && let Some(token) = tokens.flatten().find(|token| token.starts_with(qualifier))
        {
            return Err(format!(
                "null token {token:?} begins with the qualifier: it is compared with what stands inside"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MadeFrom;

    fn layout(delimiter: &str, names: &[&str]) -> Layout {
        let columns = names.iter().map(|name| Column::new(*name, ColumnType::Int32, false)).collect();
        Layout { delimiter: delimiter.to_owned(), columns, ..Layout::default() }
    }

    #[test]
    fn impossible_layouts_are_refused() {
        assert!(layout("|", &["a", "b"]).check().is_ok() && layout("é", &["a"]).check().is_ok());
        for bad in [layout("|", &[]), layout("|", &["a", "a"]), layout("", &["a"]), layout("\n", &["a"])] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        let numbers = layout("|", &["a"]);
        let bad = [
            Layout { row_end: RowEnds::Exactly(String::new()), ..numbers.clone() },
            Layout { extra_fields: ExtraFields::Keep, ..numbers.clone() },
            Layout { escape: Some('|'), ..numbers.clone() },
            Layout { escape: Some('"'), qualifier: Some('"'), ..numbers.clone() },
            Layout { row_end_in_fields: RowEndInFields::Data, trailing_delimiter: true, ..numbers.clone() },
            Layout { row_end_in_fields: RowEndInFields::Data, short_rows: ShortRows::Fill, ..numbers },
        ];
        for bad in bad {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn texts_that_end_something_have_1_to_64_bytes_as_the_parser_sees_them() {
        let numbers = layout("|", &["a"]);
        let everywhere = |text: &str| {
            let text = text.to_owned();
            let mut of_column = numbers.clone();
            of_column.columns[0].delimiter = Some(text.clone());
            [
                ("delimiter", Layout { delimiter: text.clone(), ..numbers.clone() }),
                ("delimiter", of_column),
                ("row end", Layout { row_end: RowEnds::Exactly(text.clone()), ..numbers.clone() }),
                ("comment mark", Layout { comment: Some(text), ..numbers.clone() }),
            ]
        };
        for good in ["-".to_owned(), "-".repeat(64), "\u{1F600}".repeat(16)] {
            for (name, layout) in everywhere(&good) {
                assert_eq!(layout.check(), Ok(()), "{name} {good:?}");
            }
        }
        for bad in [String::new(), "-".repeat(65), "\u{1F600}".repeat(16) + "-", "é".repeat(33)] {
            for (name, layout) in everywhere(&bad) {
                assert_eq!(layout.check(), Err(format!("{name} {bad:?} is not 1 to 64 bytes long")));
            }
        }
        // A byte each, whatever they take elsewhere.
        let page = Encoding::try_from("windows-1252".to_owned()).unwrap();
        for (name, layout) in everywhere(&"é".repeat(64)) {
            assert_eq!(Layout { encoding: page, ..layout }.check(), Ok(()), "{name}");
        }
    }

    #[test]
    fn qualifiers_that_cannot_be_told_from_other_bytes_are_refused() {
        let qualified = |qualifier| Layout { qualifier: Some(qualifier), ..layout("|", &["a"]) };
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
    fn made_columns_stand_behind_the_others() {
        let made = |name: &str, from| MadeColumn { name: name.to_owned(), from };
        let of = |columns| Layout { made: columns, ..layout("|", &["a"]) };
        let good = of(vec![made("row", MadeFrom::RowNumber), made("time", MadeFrom::LoadTime(Some(0)))]);
        assert_eq!(good.check(), Ok(()));
        assert_eq!((good.index_of("a"), good.index_of("time"), good.index_of("b")), (Some(0), Some(2), None));
        assert_eq!(good.all_columns().last(), Some(("time", ColumnType::TimestampTz)));
        let twice = of(vec![made("row", MadeFrom::RowNumber), made("row", MadeFrom::FileName)]);
        for bad in [of(vec![made("a", MadeFrom::RowNumber)]), twice] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        for from in [MadeFrom::LoadTime(None), MadeFrom::RunId(None), MadeFrom::PackageHash(None)] {
            assert!(of(vec![made("b", from)]).check().is_err_and(|text| text.contains("which run")));
        }
        let alone = Layout { columns: vec![], ..good };
        assert!(alone.check().is_err_and(|text| text.contains("no columns")));
    }

    #[test]
    fn texts_that_the_encoding_lacks_are_refused() {
        let cyrillic = |name: &str| Layout {
            encoding: Encoding::try_from(name.to_owned()).unwrap(),
            null_tokens: vec!["нет".to_owned()],
            ..layout("¦", &["a"])
        };
        assert_eq!(cyrillic("windows-1251").check(), Ok(()));
        assert_eq!(cyrillic("utf-16").check(), Ok(()));
        assert_eq!(cyrillic("windows-1252").check(), Err("windows-1252 lacks 'н' of \"нет\"".to_owned()));
        assert_eq!(cyrillic("koi8-r").check(), Err("koi8-r lacks '¦' of \"¦\"".to_owned()));
    }

    #[test]
    fn the_qualifier_may_be_left_out() {
        let text = r#"{"delimiter":",","columns":[]}"#;
        assert_eq!(serde_json::from_str::<Layout>(text).map(|layout| layout.qualifier).ok(), Some(None));
        let text = r#"{"delimiter":",","qualifier":"\"","columns":[]}"#;
        assert_eq!(serde_json::from_str::<Layout>(text).map(|layout| layout.qualifier).ok(), Some(Some('"')));
    }
}
