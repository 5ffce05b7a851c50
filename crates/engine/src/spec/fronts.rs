//! Fronts: transforms in front of a join or a union, through which the rows of one source, or of another join, go before they meet those
//! of others. They are the first ones of a flow, those of each source together, then those of each join, and each says of which it is. What
//! leaves the front of a source may go to destinations, too, which get rows of that source alone.

use super::ways::{FeedFields, FlowFields, RowFields, RowsOf};
use super::{FlowSpec, MeetingSpec, UnionSpec};

impl FlowSpec {
    /// How many of its transforms stand in front of a join or a union: they are its first ones.
    pub fn fronts(&self) -> usize {
        self.transforms.iter().take_while(|own| own.source.is_some()).count()
    }

    /// How many feeds of joins or of a union there are, in front of which transforms may stand: sources, and joins whose rows come into
    /// another one.
    pub fn feeds(&self) -> usize {
        self.join.as_ref().map_or(self.sources(), |join| join.feeds())
    }

    /// Which rows of a feed meet those of others.
    pub fn input_of_feed(&self, feed: usize) -> RowsOf {
        let said = match (&self.join, &self.union) {
            (Some(join), _) => join.input_of(feed),
            (None, Some(union)) => union.inputs.get(feed).copied(),
            (None, None) => None,
        };
        said.unwrap_or(RowsOf::FIRST)
    }

    pub(super) fn inputs_of_feeds_mut(&mut self) -> impl Iterator<Item = &mut RowsOf> {
        let of_union = self.union.iter_mut().flat_map(|union| &mut union.inputs);
        let meetings = self.join.iter_mut().flat_map(|join| join.meetings_mut());
        meetings.flat_map(|own| &mut own.inputs).chain(of_union)
    }

    /// Columns of the rows of each source, as its parser gives them.
    pub(super) fn fields_of_sources(&self) -> Vec<FeedFields> {
        (0..self.sources())
            .map(|source| self.fields_of_feed(source, &RowFields::of_layout(self.layout_of_source(source))))
            .collect()
    }

    fn fields_of_feed(&self, feed: usize, rows: &RowFields) -> FeedFields {
        let (rows, beside) = rows.without_last(self.join.as_ref().map_or(0, |join| join.beside_of(feed)));
        FeedFields { rows, beside }
    }

    /// Whether rows of a source come as its layout says, and not with the columns of a union alone: something stands in front, or somebody
    /// else reads them.
    pub fn reads_whole(&self, source: usize) -> bool {
        let is_read = |number: usize| self.source_of_destination(number) == Some(source);
        let is_known = |union: &UnionSpec| union.read_whole.contains(&source);
        self.input_of_feed(source) != RowsOf::FIRST
            || (0..self.destinations()).any(is_read)
            || self.union.as_deref().is_some_and(is_known)
    }

    /// Columns of the rows of a feed that meet those of others.
    pub fn rows_into(&self, known: &FlowFields, feed: usize) -> RowFields {
        let own = known.of_source(self.input_of_feed(feed), Some(feed));
        known.beside(feed).map_or_else(|| own.clone(), |beside| own.and(beside))
    }

    /// Makes the columns of inner joins known, up to that of a feed: what stands in front of its sides is known.
    pub(super) fn join_up_to(&self, known: &mut FlowFields, feed: usize) -> Result<(), String> {
        let Some(join) = &self.join else { return Ok(()) };
        for (number, meeting) in (self.sources()..=feed).zip(&join.inner).skip(known.feeds() - self.sources()) {
            for side in meeting.sides {
                self.check_rows(self.input_of_feed(side), known.stages(), Some(side))?;
            }
            let rows = self.rows_behind(known, meeting)?;
            known.add_feed(self.fields_of_feed(number, &rows));
        }
        Ok(())
    }

    /// Columns of the rows that come out of a join.
    fn rows_behind(&self, known: &FlowFields, meeting: &MeetingSpec) -> Result<RowFields, String> {
        let sides = meeting.sides.map(|feed| self.rows_into(known, feed));
        Ok(RowFields::of_own(meeting.resolved(&sides)?.1))
    }

    /// Columns of the rows that come out of the last join or the union, if it has one.
    pub(super) fn rows_together(&self, known: &FlowFields) -> Result<Option<RowFields>, String> {
        match (&self.join, &self.union) {
            (Some(join), _) => self.rows_behind(known, &join.last).map(Some),
            (None, Some(union)) => {
                let sources: Vec<_> =
                    (0..self.sources_together()).map(|source| self.rows_into(known, source)).collect();
                union.behind(&sources).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Whether what stands in front of sources stands before all else, and of sources that there are.
    pub(super) fn check_fronts(&self) -> Result<(), String> {
        if let Some(join) = &self.join {
            join.leaves_of_feeds()?;
        }
        let (sources, fronts) = (self.sources(), self.fronts());
        if let Some(own) = self.transforms[fronts..].iter().find(|own| own.source.is_some()) {
            return Err(format!("transform `{}` in front of a source stands behind others", own.name));
        }
        let is_feed = |source: usize| source < self.feeds();
        if let Some(own) = self.transforms.iter().find(|own| own.source.is_some_and(|source| !is_feed(source))) {
            return Err(format!("transform `{}` stands in front of a source that is not there", own.name));
        }
        let of_joins = self.join.iter().flat_map(|join| join.meetings()).map(|own| (own.inputs.len(), own.sides.len()));
        let mut inputs = of_joins.chain(self.union.iter().map(|union| (union.inputs.len(), sources)));
        if let Some((inputs, wanted)) = inputs.find(|(inputs, wanted)| *inputs > 0 && inputs != wanted) {
            return Err(format!("{inputs} inputs are not those of {wanted} sources"));
        }
        if let Some(source) = (0..sources).find(|&own| self.is_apart(own) && self.input_of_feed(own) != RowsOf::FIRST) {
            return Err(format!("source {source} stands apart, and has rows that meet others"));
        }
        for number in 0..self.destinations() {
            let Some(source) = self.source_of_destination(number) else { continue };
            if source >= sources {
                return Err(format!("destination {number} reads rows of a source that is not there"));
            }
            if number == 0 && self.input.is_none() {
                return Err("nothing says which rows of its source destination 0 reads".to_owned());
            }
        }
        Ok(())
    }
}
