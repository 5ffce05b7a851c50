//! Which layout the rows of a file have.

use headrace_types::Layout;

use crate::spec::FlowSpec;

/// The layouts of the files of a flow: one, or two of a flow that joins.
#[derive(Clone)]
pub struct Layouts {
    all: Vec<Layout>,
    first_right_file: usize,
}

impl Layouts {
    pub fn of_flow(spec: &FlowSpec) -> Self {
        let right = spec.join.as_ref().map(|join| join.right.clone());
        let first_right_file = spec.join.as_ref().map_or(usize::MAX, |join| join.first_right_file);
        Layouts { all: [spec.layout.clone()].into_iter().chain(right).collect(), first_right_file }
    }

    /// The number of the layout of a file, from 0.
    pub fn number(&self, file: usize) -> usize {
        usize::from(file >= self.first_right_file)
    }

    /// The layout of a file.
    pub fn of(&self, file: usize) -> &Layout {
        self.numbered(self.number(file))
    }

    /// A layout by its number.
    pub fn numbered(&self, number: usize) -> &Layout {
        &self.all[number.min(self.all.len() - 1)]
    }
}
