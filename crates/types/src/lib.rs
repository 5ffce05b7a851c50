//! Words shared by every stage of the core: column types, layouts, locations, reject rules, errors.
//!
//! Lowest layer: no I/O, no threads, no Python.

mod column_type;
mod encoding;
mod error;
mod format;
mod layout;
mod made;
mod pattern;
mod places;
mod row_schema;
mod rule;
mod server_fields;

pub use column_type::{ColumnType, MAX_DECIMAL64_PRECISION};
pub use encoding::{Encoding, Page, Piece, Unmappable, half_pair, odd_byte};
pub use error::{CoreError, ErrorKind, Location};
pub use format::{
    EpochFormat, EpochUnit, Format, GroupFormat, Negative, NumberFormat, PatternFormat, TruthFormat, folded, is_blank,
};
pub use layout::{
    BlankRows, Column, Disposition, EmptyField, EscapeCodes, ExtraFields, Header, Layout, LayoutShape, MAX_TOKEN_BYTES,
    MixedRowEnds, OtherColumns, Place, RowEnd, RowEndInFields, RowEnds, ShortRows, StrayQualifiers, Trim, WidthUnit,
};
pub use made::{MadeColumn, MadeFrom};
pub use pattern::{Element, MAX_FRACTION_DIGITS, Part, parse_pattern};
pub use places::MAX_ROW_WIDTH;
pub use row_schema::{RowColumn, RowSchema};
pub use rule::Rule;
pub use server_fields::ServerFields;
