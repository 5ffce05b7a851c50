//! Which layout the rows of a file have.

use headrace_types::Layout;

use crate::spec::FlowSpec;

/// The layouts of the files of a flow: one, or those of several sources, whose files stand one behind the other.
#[derive(Clone)]
pub struct Layouts {
    all: Vec<Layout>,
    /// Index of the first file that has each.
    first_files: Vec<usize>,
}

impl Layouts {
    pub fn of_flow(spec: &FlowSpec) -> Self {
        let (first_files, all) = spec.layouts().into_iter().map(|(file, layout)| (file, layout.clone())).unzip();
        Layouts { all, first_files }
    }

    /// The number of the layout of a file, from 0.
    pub fn number(&self, file: usize) -> usize {
        self.first_files.partition_point(|first| *first <= file).saturating_sub(1)
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
