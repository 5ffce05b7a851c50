//! The eight tables and the names of their files.

use std::fmt;
use std::str::FromStr;

use crate::error::GenerateError;

/// A table of the TPC-H benchmark, in the order in which foreign keys allow loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TpchTable {
    /// 5 rows at every scale.
    Region,
    /// 25 rows at every scale.
    Nation,
    /// 10,000 rows per unit of scale.
    Supplier,
    /// 150,000 rows per unit of scale.
    Customer,
    /// 200,000 rows per unit of scale.
    Part,
    /// 800,000 rows per unit of scale: four per part.
    Partsupp,
    /// 1,500,000 rows per unit of scale.
    Orders,
    /// About 6,000,000 rows per unit of scale: one to seven per order.
    Lineitem,
}

impl TpchTable {
    /// All eight tables.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Customer,
        Self::Part,
        Self::Partsupp,
        Self::Orders,
        Self::Lineitem,
    ];

    /// The name in lower case, as in the benchmark's own schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Orders => "orders",
            Self::Lineitem => "lineitem",
        }
    }

    /// Whether the table is spread over the chunks. NATION and REGION are not: chunk 1 holds them
    /// whole and every other chunk of them is empty.
    #[must_use]
    pub const fn is_chunked(self) -> bool {
        !matches!(self, Self::Region | Self::Nation)
    }

    /// The file name of a chunk: `lineitem.tbl.6` for chunk 6 of several, `lineitem.tbl` for a
    /// table that is not cut into chunks.
    #[must_use]
    pub fn file_name(self, chunk: u32, chunks: u32) -> String {
        if self.is_chunked() && chunks > 1 {
            format!("{}.tbl.{chunk}", self.name())
        } else {
            format!("{}.tbl", self.name())
        }
    }

    /// The table and the chunk number that a file name of [`Self::file_name`] stands for; the
    /// chunk is `None` for a name without number, the result `None` for any other file name.
    #[must_use]
    pub fn of_file_name(file_name: &str) -> Option<(Self, Option<u32>)> {
        let (table, rest) = file_name.split_once(".tbl")?;
        let table = Self::from_str(table).ok()?;
        if rest.is_empty() {
            return Some((table, None));
        }
        let digits = rest.strip_prefix('.')?;
        let chunk: u32 = digits.parse().ok()?;
        // Only the spelling that `file_name` writes: no sign, no leading zeros, not chunk 0.
        (chunk > 0 && chunk.to_string() == digits).then_some((table, Some(chunk)))
    }

    /// Rows of the table that numbers this one, per unit of scale; `None` for the fixed tables.
    /// LINEITEM is numbered by its orders, PARTSUPP by its parts.
    pub(crate) const fn units_per_scale(self) -> Option<f64> {
        match self {
            Self::Region | Self::Nation => None,
            Self::Supplier => Some(10_000.0),
            Self::Customer => Some(150_000.0),
            Self::Part | Self::Partsupp => Some(200_000.0),
            Self::Orders | Self::Lineitem => Some(1_500_000.0),
        }
    }
}

impl FromStr for TpchTable {
    type Err = GenerateError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|table| table.name() == name)
            .ok_or_else(|| GenerateError::UnknownTable { name: name.to_owned() })
    }
}

impl fmt::Display for TpchTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
