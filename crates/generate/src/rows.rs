//! Rows as TBL text, written by hand: the library's `Display` takes three times as long.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{Customer, LineItem, Nation, Order, Part, PartSupp, Region, Supplier};

/// No row is longer: its comment has at most 198 bytes, all other fields together fewer than 200.
pub(crate) const MAXIMUM_ROW_BYTES: usize = 512;

const DATE_BYTES: usize = 10;

/// The text of every date that the benchmark knows, by its day number.
static DATES: LazyLock<Vec<[u8; DATE_BYTES]>> = LazyLock::new(|| {
    (0..TOTAL_DATE_RANGE)
        .map(|day| {
            let text = TPCHDate::new(MIN_GENERATE_DATE + day).to_string();
            let mut bytes = [b'0'; DATE_BYTES];
            bytes.copy_from_slice(text.as_bytes());
            bytes
        })
        .collect()
});

/// "00", "01" ... "99" one after the other.
static DIGIT_PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut value = 0;
    while value < 100 {
        pairs[2 * value] = b'0' + (value / 10) as u8;
        pairs[2 * value + 1] = b'0' + (value % 10) as u8;
        value += 1;
    }
    pairs
};

/// Writes fields one after the other; the caller makes sure that a whole row fits.
pub(crate) struct RowWriter<'a> {
    bytes: &'a mut [u8],
    length: usize,
    dates: &'static [[u8; DATE_BYTES]],
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0, dates: &DATES }
    }

    /// Bytes written so far.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Whether another row certainly fits.
    pub(crate) const fn has_room(&self) -> bool {
        self.bytes.len() - self.length >= MAXIMUM_ROW_BYTES
    }

    #[inline]
    fn raw(&mut self, text: &[u8]) {
        let end = self.length + text.len();
        self.bytes[self.length..end].copy_from_slice(text);
        self.length = end;
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    /// Writes the digits of `value` into exactly `digits` bytes, with leading zeros.
    #[inline]
    fn digits(&mut self, mut value: u64, digits: usize) {
        let end = self.length + digits;
        let field = &mut self.bytes[self.length..end];
        let mut at = digits;
        while at >= 2 {
            let pair = 2 * (value % 100) as usize;
            value /= 100;
            field[at - 2..at].copy_from_slice(&DIGIT_PAIRS[pair..pair + 2]);
            at -= 2;
        }
        if at == 1 {
            field[0] = b'0' + (value % 10) as u8;
        }
        self.length = end;
    }

    #[inline]
    fn unsigned(&mut self, value: u64) {
        self.digits(value, digit_count(value));
    }

    /// A field with a whole number.
    #[inline]
    fn integer(&mut self, value: i64) {
        if value < 0 {
            self.byte(b'-');
        }
        self.unsigned(value.unsigned_abs());
        self.byte(b'|');
    }

    /// A field with a text.
    #[inline]
    fn text(&mut self, text: &str) {
        self.raw(text.as_bytes());
        self.byte(b'|');
    }

    /// A field like `Customer#000000001`.
    #[inline]
    fn numbered(&mut self, name: &str, value: i64) {
        self.raw(name.as_bytes());
        let value = value.unsigned_abs();
        self.digits(value, digit_count(value).max(9));
        self.byte(b'|');
    }

    /// A field with two decimals.
    #[inline]
    fn decimal(&mut self, value: TPCHDecimal) {
        if value.0 < 0 {
            self.byte(b'-');
        }
        let hundredths = value.0.unsigned_abs();
        self.unsigned(hundredths / 100);
        let pair = 2 * (hundredths % 100) as usize;
        self.raw(&[b'.', DIGIT_PAIRS[pair], DIGIT_PAIRS[pair + 1], b'|']);
    }

    /// A field with a date.
    #[inline]
    fn date(&mut self, date: TPCHDate) {
        let text = self.dates[date.into_inner() as usize];
        self.raw(&text);
        self.byte(b'|');
    }

    /// A field whose parts the library does not give away.
    #[inline]
    fn display(&mut self, value: impl fmt::Display) {
        // `write_str` below never fails, and so neither does this.
        let _ = write!(self, "{value}|");
    }

    /// The last field and the row end.
    #[inline]
    fn last_text(&mut self, text: &str) {
        self.raw(text.as_bytes());
        self.raw(b"|\n");
    }
}

impl fmt::Write for RowWriter<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.raw(text.as_bytes());
        Ok(())
    }
}

/// Number of decimal digits of `value`, 1 for 0.
#[inline]
pub(crate) fn digit_count(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

/// A row that can be written as TBL text: fields each followed by `|`, then a line feed.
pub(crate) trait TblRow {
    fn write(&self, out: &mut RowWriter<'_>);

    /// The comment, which lies anywhere in the library's text pool.
    fn comment(&self) -> &[u8];
}

impl TblRow for Region<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.r_regionkey);
        out.text(self.r_name);
        out.last_text(self.r_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.r_comment.as_bytes()
    }
}

impl TblRow for Nation<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.n_nationkey);
        out.text(self.n_name);
        out.integer(self.n_regionkey);
        out.last_text(self.n_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.n_comment.as_bytes()
    }
}

impl TblRow for Supplier {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.s_suppkey);
        out.numbered("Supplier#", self.s_suppkey);
        out.display(&self.s_address);
        out.integer(self.s_nationkey);
        out.display(&self.s_phone);
        out.decimal(self.s_acctbal);
        out.last_text(&self.s_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.s_comment.as_bytes()
    }
}

impl TblRow for Customer<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.c_custkey);
        out.numbered("Customer#", self.c_custkey);
        out.display(&self.c_address);
        out.integer(self.c_nationkey);
        out.display(&self.c_phone);
        out.decimal(self.c_acctbal);
        out.text(self.c_mktsegment);
        out.last_text(self.c_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.c_comment.as_bytes()
    }
}

impl TblRow for Part<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.p_partkey);
        out.display(&self.p_name);
        out.display(self.p_mfgr);
        out.display(self.p_brand);
        out.text(self.p_type);
        out.integer(i64::from(self.p_size));
        out.text(self.p_container);
        out.decimal(self.p_retailprice);
        out.last_text(self.p_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.p_comment.as_bytes()
    }
}

impl TblRow for PartSupp<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.ps_partkey);
        out.integer(self.ps_suppkey);
        out.integer(i64::from(self.ps_availqty));
        out.decimal(self.ps_supplycost);
        out.last_text(self.ps_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.ps_comment.as_bytes()
    }
}

impl TblRow for Order<'_> {
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.o_orderkey);
        out.integer(self.o_custkey);
        out.text(self.o_orderstatus.as_str());
        out.decimal(self.o_totalprice);
        out.date(self.o_orderdate);
        out.text(self.o_orderpriority);
        out.display(self.o_clerk);
        out.integer(i64::from(self.o_shippriority));
        out.last_text(self.o_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.o_comment.as_bytes()
    }
}

impl TblRow for LineItem<'_> {
    #[inline]
    fn write(&self, out: &mut RowWriter<'_>) {
        out.integer(self.l_orderkey);
        out.integer(self.l_partkey);
        out.integer(self.l_suppkey);
        out.integer(i64::from(self.l_linenumber));
        out.integer(self.l_quantity);
        out.decimal(self.l_extendedprice);
        out.decimal(self.l_discount);
        out.decimal(self.l_tax);
        out.text(self.l_returnflag);
        out.text(self.l_linestatus);
        out.date(self.l_shipdate);
        out.date(self.l_commitdate);
        out.date(self.l_receiptdate);
        out.text(self.l_shipinstruct);
        out.text(self.l_shipmode);
        out.last_text(self.l_comment);
    }

    #[inline]
    fn comment(&self) -> &[u8] {
        self.l_comment.as_bytes()
    }
}
