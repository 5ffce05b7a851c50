//! The joins of a flow as a tree: its leaves are the sources whose rows meet, and rows of each join but the last come into another one.
//!
//! What comes into a join is a feed, and has a number: the sources in their order, and behind them the inner joins, each behind its sides.

use std::ops::Range;

use super::{JoinSpec, MeetingSpec, RowsOf};

/// Most sources that meet: a stream holds a block of each.
const MOST_LEAVES: usize = 64;

impl JoinSpec {
    /// How many feeds there are, with the sources apart, whose rows come into no join.
    pub fn feeds(&self) -> usize {
        self.sources.len() + self.inner.len()
    }

    /// How many sources meet.
    pub fn leaves(&self) -> usize {
        super::sources::together(&self.sources)
    }

    /// All joins, the last one behind the inner ones.
    pub fn meetings(&self) -> impl Iterator<Item = &MeetingSpec> {
        self.inner.iter().chain([&self.last])
    }

    /// The same, to be changed.
    pub fn meetings_mut(&mut self) -> impl Iterator<Item = &mut MeetingSpec> {
        self.inner.iter_mut().chain([&mut self.last])
    }

    /// The inner join that is this feed, if it is one.
    pub fn inner_of(&self, feed: usize) -> Option<usize> {
        feed.checked_sub(self.sources.len()).filter(|inner| *inner < self.inner.len())
    }

    /// Which rows of a feed come into its join, if that is said.
    pub fn input_of(&self, feed: usize) -> Option<RowsOf> {
        let input = |own: &MeetingSpec| own.inputs.get(own.side_of(feed)?.index()).copied();
        self.meetings().find_map(input)
    }

    /// The leaves of each feed, from the first to the last, and of the last join; of a source apart it is none.
    ///
    /// # Errors
    /// A sentence about joins that are no tree over the sources in their order.
    pub fn leaves_of_feeds(&self) -> Result<Vec<Range<usize>>, String> {
        let (leaves, joins) = (self.leaves(), self.inner.len() + 1);
        if leaves > MOST_LEAVES || leaves != joins + 1 {
            let name = &self.last.name;
            return Err(format!("join `{name}`: {joins} joins do not bring {leaves} sources together"));
        }
        let own = |source: usize| if source < leaves { source..source + 1 } else { source..source };
        let mut all: Vec<_> = (0..self.sources.len()).map(own).collect();
        let mut is_taken = vec![false; self.feeds()];
        for meeting in self.meetings() {
            let refuse = |text: &str| Err(format!("join `{}`: {text}", meeting.name));
            for side in meeting.sides {
                match all.get(side) {
                    None => return refuse("its sides do not stand before it"),
                    Some(own) if own.is_empty() => return refuse("a source apart is no side"),
                    Some(_) if std::mem::replace(&mut is_taken[side], true) => {
                        return refuse("one of its sides is another one, too");
                    }
                    Some(_) => {}
                }
            }
            let [left, right] = meeting.sides.map(|side| all[side].clone());
            if left.end != right.start {
                return refuse("its sources do not stand in the order of the joins");
            }
            all.push(left.start..right.end);
        }
        Ok(all)
    }

    /// How many columns of a feed, the last ones, go past what stands in front of it.
    pub fn beside_of(&self, feed: usize) -> usize {
        let leaves = || self.leaves_of_feeds().ok()?.get(feed).map(ExactSizeIterator::len);
        if self.beside == 0 { 0 } else { self.beside * leaves().unwrap_or(0) }
    }
}
