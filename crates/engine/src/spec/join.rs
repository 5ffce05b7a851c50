//! Two sources whose rows meet: the files of the flow are those of both, left ones first, and the k-th of each side are a pair.

use headrace_transform::join;
use headrace_types::{ColumnType, Layout, RowColumn, RowSchema};
use serde::Deserialize;

use super::{FlowSpec, RowFields, RowsOf, SinkSpec, SliceSpec, SourceSpec};
use crate::queue::Group;

/// A join in front of the transforms of a flow, but for those in front of its sides. Its layout is that of the left files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinSpec {
    /// Name, for messages.
    pub name: String,
    /// Names of the left and of the right source, for messages.
    pub sources: [String; 2],
    /// Columns and dialect of the right files.
    pub right: Layout,
    /// Index of the first right file.
    pub first_right_file: usize,
    /// Sources whose rows never meet others, in the order of their files, which stand behind those of the pairs: only destinations in their
    /// own fronts get them.
    #[serde(default)]
    pub apart: Vec<ApartSource>,
    /// Which rows go on.
    pub kind: JoinKind,
    /// Which rows of the left and of the right source meet; those of their parsers if that is not said.
    #[serde(default)]
    pub inputs: Vec<RowsOf>,
    /// Columns of the key: the left and the right one of each.
    pub keys: Vec<[String; 2]>,
    /// Columns of the rows that go on, in their order.
    pub columns: Vec<JoinColumn>,
    /// How many columns, the last ones of each side that are made, go past what stands in front of it: a pass that looks for the places of
    /// rows has them.
    #[serde(skip)]
    pub beside: usize,
}

/// A source beside a join.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApartSource {
    /// Name, for messages.
    pub name: String,
    /// Columns and dialect of its files.
    pub layout: Layout,
    /// Index of its first file; of a source without files that of the next one.
    pub first_file: usize,
}

/// Which rows go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without one.
    Left,
    /// Pairs, and right rows without one.
    Right,
    /// All.
    Full,
}

/// A column of the rows that go on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinColumn {
    /// Where it is from.
    pub side: JoinSide,
    /// Its name there, behind what stands in front of the side.
    pub column: String,
    /// Its name behind the join.
    pub name: String,
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinSide {
    /// That whose keys come once.
    Left,
    /// The other one.
    Right,
}

impl From<JoinKind> for join::JoinKind {
    fn from(kind: JoinKind) -> Self {
        match kind {
            JoinKind::Inner => join::JoinKind::Inner,
            JoinKind::Left => join::JoinKind::Left,
            JoinKind::Right => join::JoinKind::Right,
            JoinKind::Full => join::JoinKind::Full,
        }
    }
}

impl From<JoinSide> for join::Side {
    fn from(side: JoinSide) -> Self {
        match side {
            JoinSide::Left => join::Side::Left,
            JoinSide::Right => join::Side::Right,
        }
    }
}

impl JoinSpec {
    /// The number of the source that a file is of: 0 left, 1 right, then those apart.
    pub fn source_of(&self, file: usize) -> usize {
        match self.apart.partition_point(|own| own.first_file <= file) {
            0 => self.side_of(file).index(),
            behind => join::Side::Right.index() + behind,
        }
    }

    /// The side that a file of a pair is of.
    pub fn side_of(&self, file: usize) -> join::Side {
        if file < self.first_right_file { join::Side::Left } else { join::Side::Right }
    }

    /// The layout of a source; `left`: that of the flow.
    pub fn layout<'a>(&'a self, left: &'a Layout, source: usize) -> &'a Layout {
        match source.checked_sub(join::Side::BOTH.len()) {
            Some(apart) => self.apart.get(apart).map_or(left, |own| &own.layout),
            None if source == 0 => left,
            None => &self.right,
        }
    }

    /// The columns of the key on a side, with their types; `rows`: those of the side that meet others.
    ///
    /// # Errors
    /// A sentence that names a column which is not there.
    pub fn key_columns(&self, rows: &RowSchema, side: join::Side) -> Result<Vec<(usize, RowColumn)>, String> {
        let keys = self.keys.iter().map(|names| &names[side.index()]);
        keys.map(|name| self.column(rows, side, name)).collect()
    }

    fn column(&self, rows: &RowSchema, side: join::Side, name: &str) -> Result<(usize, RowColumn), String> {
        let index = rows.index_of(name);
        let found = index.and_then(|index| Some((index, rows.columns().get(index)?.clone())));
        found.ok_or_else(|| format!("its {side} rows have no column `{name}`"))
    }

    /// What is joined, and the rows that come out; `sides`: the rows that meet.
    ///
    /// # Errors
    /// A sentence about columns that are not there, stand twice, or cannot be compared.
    pub fn resolved(&self, sides: &[RowFields; 2]) -> Result<(join::JoinSpec, RowSchema), String> {
        let refuse = |text: String| format!("join `{}`: {text}", self.name);
        let [left_keys, right_keys] = join::Side::BOTH.map(|side| self.key_columns(&sides[side.index()].schema, side));
        let keys = left_keys.map_err(refuse)?.into_iter().zip(right_keys.map_err(refuse)?);
        let key = |((left, left_column), (right, right_column)): ((usize, RowColumn), (usize, RowColumn))| {
            let [left_type, right_type]: [ColumnType; 2] = [left_column.column_type, right_column.column_type];
            join::JoinKey { left, left_type, right, right_type }
        };
        let kind = join::JoinKind::from(self.kind);
        let (mut columns, mut schema) = (Vec::new(), RowSchema::empty());
        for own in &self.columns {
            let side = join::Side::from(own.side);
            let (column, found) = self.column(&sides[side.index()].schema, side, &own.column).map_err(refuse)?;
            columns.push(join::OutputColumn { side, column });
            let nullable = found.nullable || kind.keeps(side.other());
            schema.add(RowColumn { name: own.name.clone(), nullable, ..found }).map_err(refuse)?;
        }
        let spec = join::JoinSpec { kind, keys: keys.map(key).collect(), columns, schema: schema.arrow() };
        join::MergeJoin::new(spec.clone()).map_err(refuse)?;
        Ok((spec, schema))
    }

    /// The slices of each pair, left ones first.
    pub fn pairs(&self, source: &SourceSpec) -> Vec<Group> {
        let mut pairs = vec![Group::new(); self.first_right_file];
        for slice in &source.slices {
            if let Some(pair) = pairs.get_mut(self.pair_of(slice.file)) {
                pair.push(slice.clone());
            }
        }
        pairs.iter_mut().for_each(|pair| pair.sort_by_key(|slice| slice.file));
        pairs.retain(|pair| !pair.is_empty());
        pairs
    }

    /// The number of the pair that a file is of, from 0.
    pub fn pair_of(&self, file: usize) -> usize {
        file.checked_sub(self.first_right_file).unwrap_or(file)
    }

    /// What of the flow cannot be together with a join, if anything.
    pub(super) fn misfit(&self, flow: &FlowSpec) -> Option<String> {
        let FlowSpec { source, memory, streams, .. } = flow;
        let all = source.files.len();
        let files = self.apart.first().map_or(all, |own| own.first_file.min(all));
        let is_cut = |file: usize| source.slices.iter().filter(|slice| slice.file == file).count() > 1;
        let least_blocks = streams.saturating_mul(2);
        let is_torn = |pair: &[SliceSpec]| {
            (0..flow.destinations()).any(|own| {
                let known = flow.committed_in(own);
                let is_there = |slice: &&SliceSpec| known.is_some_and(|known| known.contains_key(&slice.number));
                let mut taken = pair.iter().filter(|slice| flow.takes(own, slice.number)).peekable();
                let is_first_there = taken.peek().is_some_and(is_there);
                !taken.all(|slice| is_there(&slice) == is_first_there)
            })
        };
        let has_positions = |(number, sink): (usize, &SinkSpec)| {
            let is_joined = flow.source_of_destination(number).is_none();
            is_joined && matches!(sink, SinkSpec::Arrow { position: Some(_), .. } | SinkSpec::Locate { .. })
        };
        let text = if !self.apart.is_sorted_by_key(|own| own.first_file) {
            "the files of sources beside it do not follow one another".to_owned()
        } else if files != self.first_right_file.saturating_mul(2) {
            let left = self.first_right_file;
            format!("{left} left files are not pairs with {} right ones", files.saturating_sub(left))
        } else if (0..files).any(is_cut) {
            "a file of a pair cannot be cut".to_owned()
        } else if source.files[..files].iter().any(|file| file.stream.is_some()) {
            "a pipe cannot be in a pair".to_owned()
        } else if source.generate.is_some() || !source.epochs.is_empty() {
            "generated rows and epochs cannot be in pairs".to_owned()
        } else if flow.sinks().enumerate().any(has_positions) {
            "joined rows have no positions".to_owned()
        } else if let Some(pair) = self.pairs(source).iter().find(|pair| is_torn(pair)) {
            format!("of the pair with slice {} one slice was committed and one was not", pair[0].number)
        } else if memory.blocks < least_blocks {
            format!("{} blocks are fewer than the {least_blocks} that {streams} streams hold", memory.blocks)
        } else {
            return None;
        };
        Some(format!("join `{}`: {text}", self.name))
    }
}
