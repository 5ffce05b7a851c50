//! From which to which key the rows of a unit go, in each join.

use headrace_transform::join::Side;
use headrace_transform::lookup::KeyValue;
use headrace_types::{CoreError, ErrorKind, RowColumn};

use super::super::ranges::JoinedRange;
use super::super::reader::Progress;
use super::node::Node;
use super::{Joining, Opened};
use crate::lookup::key_text;

impl Joining<'_> {
    /// The keys of a unit in each join that has any.
    pub(super) fn ranges(&self, opened: &Opened<'_>) -> Vec<JoinedRange> {
        let range = |node: usize| {
            let keys = opened.nodes[node].join.range()?;
            let mut leaves = opened.leaves[self.nodes[node].leaves.clone()].iter();
            let file = leaves.find_map(|own| own.progress.as_ref().map(Progress::slice))?.file;
            let shown = [keys.first(), keys.last()].map(|key| self.shown(node, Side::Left, key));
            Some(JoinedRange { join: node, file, keys: keys.codes(), shown })
        };
        (0..self.nodes.len()).filter_map(range).collect()
    }

    /// Refuses keys that another unit has, too.
    pub(super) fn check_range(&self, own: &JoinedRange) -> Result<(), CoreError> {
        let Some(other) = self.shared.joined.add(own.clone()) else { return Ok(()) };
        let is_first = self.spec.unit_of(own.file) < self.spec.unit_of(other.file);
        let [before, behind] = if is_first { [own, &other] } else { [&other, own] };
        let path =
            |file: usize| self.shared.spec.source.files.get(file).map(|file| file.path.as_str()).unwrap_or_default();
        let shown = |range: &JoinedRange| {
            let [first, last] = &range.shown;
            format!("{first} to {last} in {}", path(range.file))
        };
        let Node { spec, leaves, .. } = &self.nodes[own.join];
        let (unit, sources) = if leaves.len() > 2 { ("set", "all") } else { ("pair", "both") };
        let what = format!("{unit}s of files of join `{}` have keys in common", spec.name);
        Err(CoreError::new(ErrorKind::Source, what)
            .at_file(path(behind.file))
            .found(format!("{}, {}", shown(before), shown(behind)))
            .expected(format!("each key in one {unit} of files only, and no others between the keys of a {unit}"))
            .hint(format!("Cut {sources} sources at the same keys, or write each of them as one file.")))
    }

    /// A key with the names of its columns on a side of a join.
    pub(super) fn shown(&self, node: usize, side: Side, key: &[KeyValue]) -> String {
        let own = &self.nodes[node];
        let columns = own.spec.key_columns(&own.sides[side.index()].schema, side).unwrap_or_default();
        let value = |((_, column), value): (&(usize, RowColumn), _)| {
            format!("{} = {}", column.name, key_text(column.column_type, value))
        };
        columns.iter().zip(key).map(value).collect::<Vec<_>>().join(", ")
    }
}
