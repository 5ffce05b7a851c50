//! The destinations of a flow: one, or several that get their rows in one pass. What streams ask of all of them together.

use std::sync::Arc;

use headrace_types::CoreError;

use crate::measure::{ConsumerMeasure, WriterMeasure};
use crate::outcome::Outcome;
use crate::queue::Group;
use crate::report::{ColumnReport, DestinationReport, SinkReport};
use crate::routing::Router;
use crate::sink::arrow::BatchReader;
use crate::sink::{self, Sink};
use crate::spec::FlowSpec;
use crate::transforms::Transforms;

/// One destination.
pub struct Destination {
    /// Its name, if it is one of several.
    pub name: String,
    /// Finds the places of its rows, if they have any.
    pub router: Option<Arc<Router>>,
    /// Where they go.
    pub sink: Arc<dyn Sink>,
}

/// All of a flow; at least one.
pub struct Destinations(Vec<Destination>);

impl Destinations {
    /// Those of a specification, and the readers of their merged streams, as far as they have one.
    ///
    /// # Errors
    /// `Specification` for sinks that contradict the rows or themselves.
    pub fn of(
        spec: &Arc<FlowSpec>,
        queue_batches: usize,
        outcome: &Arc<Outcome>,
        transforms: &Arc<Transforms>,
    ) -> Result<(Self, Vec<Option<BatchReader>>), CoreError> {
        let mut all = Vec::new();
        let mut readers = Vec::new();
        for number in 0..spec.destinations() {
            let (way, own) = match spec.others.is_empty() && spec.input.is_none() && !spec.has_apart() {
                true => (spec.clone(), transforms.clone()),
                false => (Arc::new(spec.way(number)), Arc::new(transforms.way(number))),
            };
            let router = Router::of(&way)?.map(Arc::new);
            let (sink, reader) = sink::make(&way, queue_batches, outcome.clone(), &own, router.as_ref())?;
            all.push(Destination { name: way.destination.clone(), router, sink });
            readers.push(reader);
        }
        Ok((Destinations(all), readers))
    }

    /// A sink of the core's own.
    pub fn one(router: Option<Arc<Router>>, sink: Arc<dyn Sink>) -> Self {
        Destinations(vec![Destination { name: String::new(), router, sink }])
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Destination] {
        &self.0
    }

    /// Whether there is one alone.
    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Whether any has places for rows.
    pub fn have_places(&self) -> bool {
        self.0.iter().any(|own| own.router.is_some())
    }

    /// As [`Sink::groups`]. What one wants taken together, all others take together, too.
    pub fn groups(&self, units: Vec<Group>) -> Vec<Group> {
        self.0.iter().fold(units, |units, own| own.sink.groups(units))
    }

    /// As [`Sink::wanted_columns`].
    pub fn wanted_columns(&self) -> Option<Vec<usize>> {
        self.0.first().filter(|_| self.is_one()).and_then(|own| own.sink.wanted_columns())
    }

    /// As [`Sink::keeps_rejects`].
    pub fn keeps_rejects(&self) -> bool {
        self.0.iter().any(|own| own.sink.keeps_rejects())
    }

    /// As [`Sink::hashes_texts`].
    pub fn hashes_texts(&self) -> bool {
        self.0.iter().any(|own| own.sink.hashes_texts())
    }

    /// Whether some consumers keep blocks, and none of them has anything to take: as long as one works, blocks come home. Others
    /// have no say: beside them a consumer may wait for ever for what it needs before it lets go.
    pub fn starved(&self) -> bool {
        let mut keeping = self.0.iter().filter(|own| own.sink.keeps_blocks()).peekable();
        keeping.peek().is_some() && keeping.all(|own| own.sink.starved())
    }

    /// As [`Sink::close`].
    pub fn close(&self) {
        self.0.iter().for_each(|own| own.sink.close());
    }

    /// As [`Sink::abandon`].
    pub fn abandon(&self) {
        self.0.iter().for_each(|own| own.sink.abandon());
    }

    /// As [`Sink::commit`].
    pub fn commit(&self) -> Result<(), CoreError> {
        let commit =
            |(number, own): (usize, &Destination)| own.sink.commit().map_err(|error| self.named(number, error));
        self.0.iter().enumerate().try_for_each(commit)
    }

    /// An error of one of them, which says so if there are several.
    pub fn named(&self, number: usize, error: CoreError) -> CoreError {
        match self.0.get(number).filter(|_| !self.is_one()) {
            Some(own) => error.of_destination(&own.name),
            None => error,
        }
    }

    /// As [`Sink::seen_at_work`], of all or of one of them: processes of several servers may have the same numbers.
    pub fn seen_at_work(&self, destination: Option<usize>, processes: &[i32]) {
        let all = self.0.iter().enumerate();
        all.filter(|(number, _)| destination.is_none_or(|own| own == *number))
            .for_each(|(_, own)| own.sink.seen_at_work(processes));
    }

    /// As [`Sink::writers`], of all; each says whose it is, if there are several.
    pub fn writers(&self) -> Vec<WriterMeasure> {
        let told = |own: &Destination| {
            let destination = self.told(own);
            own.sink
                .writers()
                .into_iter()
                .map(move |writer| WriterMeasure { destination: destination.clone(), ..writer })
        };
        self.0.iter().flat_map(told).collect()
    }

    /// As [`Sink::consumer`], of each, if there are several.
    pub fn consumers(&self) -> Vec<ConsumerMeasure> {
        let told = |own: &Destination| {
            own.sink.consumer().map(|consumer| ConsumerMeasure { destination: self.told(own), ..consumer })
        };
        if self.is_one() { Vec::new() } else { self.0.iter().filter_map(told).collect() }
    }

    /// The name of one of several.
    fn told(&self, own: &Destination) -> Option<String> {
        (!self.is_one()).then(|| own.name.clone())
    }

    /// As [`Sink::consumer`]: rows of all, and times of the one that has worked most.
    pub fn consumer(&self) -> Option<ConsumerMeasure> {
        let own: Vec<_> = self.0.iter().filter_map(|own| own.sink.consumer()).collect();
        let (batches, rows) = own.iter().fold((0, 0), |sum, own| (sum.0 + own.batches, sum.1 + own.rows));
        let busiest = own.into_iter().max_by(|one, other| one.busy_seconds.total_cmp(&other.busy_seconds));
        busiest.map(|busiest| ConsumerMeasure { batches, rows, ..busiest })
    }

    /// As [`Sink::report`]: rows of all, and times of the one that has worked most.
    pub fn report(&self) -> SinkReport {
        if self.is_one() {
            return self.0.first().map(|own| own.sink.report()).unwrap_or_default();
        }
        let own: Vec<_> = self.0.iter().map(|own| own.sink.report()).collect();
        let mut sum = SinkReport::default();
        for report in &own {
            sum.batches += report.batches;
            sum.rows += report.rows;
            if let Some(confirmed) = report.confirmed {
                *sum.confirmed.get_or_insert(0) += confirmed;
            }
        }
        let busiest = own.into_iter().max_by(|one, other| one.busy_seconds.total_cmp(&other.busy_seconds));
        if let Some(SinkReport { wait_input_seconds, busy_seconds, .. }) = busiest {
            (sum.wait_input_seconds, sum.busy_seconds) = (wait_input_seconds, busy_seconds);
        }
        sum
    }

    /// As [`Sink::columns`], of one that is alone.
    pub fn columns(&self) -> Option<Vec<ColumnReport>> {
        self.0.first().filter(|_| self.is_one()).and_then(|own| own.sink.columns())
    }

    /// Of each, if there are several.
    pub fn reports(&self) -> Vec<DestinationReport> {
        let report = |own: &Destination| DestinationReport { sink: own.sink.report(), columns: own.sink.columns() };
        if self.is_one() { Vec::new() } else { self.0.iter().map(report).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Transport, WriterMeter};
    use crate::sink::Writer;

    /// A consumer that keeps blocks, or does not, and waits for input, or does not.
    struct Consumer {
        keeps: bool,
        waits: bool,
    }

    impl Sink for Consumer {
        fn writer(&self) -> Box<dyn Writer> {
            unreachable!("nothing is written")
        }

        fn keeps_blocks(&self) -> bool {
            self.keeps
        }

        fn starved(&self) -> bool {
            self.waits
        }
    }

    fn starved(consumers: &[(bool, bool)]) -> bool {
        let of = |&(keeps, waits): &(bool, bool)| Destination {
            name: String::new(),
            router: None,
            sink: Arc::new(Consumer { keeps, waits }),
        };
        Destinations(consumers.iter().map(of).collect()).starved()
    }

    /// A consumer that has worked so long, and a connection.
    struct Measured(f64);

    impl Sink for Measured {
        fn writer(&self) -> Box<dyn Writer> {
            unreachable!("nothing is written")
        }

        fn consumer(&self) -> Option<ConsumerMeasure> {
            let idle =
                ConsumerMeasure { destination: None, wait_input_seconds: 0.0, busy_seconds: 0.0, batches: 0, rows: 5 };
            Some(ConsumerMeasure { busy_seconds: self.0, ..idle })
        }

        fn writers(&self) -> Vec<WriterMeasure> {
            vec![WriterMeter::new(1, 7, Transport::Unix).measure()]
        }
    }

    fn measured(seconds: &[(&str, f64)]) -> Destinations {
        let of = |&(name, busy): &(&str, f64)| Destination {
            name: name.to_owned(),
            router: None,
            sink: Arc::new(Measured(busy)),
        };
        Destinations(seconds.iter().map(of).collect())
    }

    #[test]
    fn each_of_several_is_measured_under_its_name() {
        let several = measured(&[("one", 1.0), ("two", 2.0)]);
        let writers: Vec<_> = several.writers().into_iter().map(|own| (own.destination, own.number)).collect();
        assert_eq!(writers, [(Some("one".to_owned()), 1), (Some("two".to_owned()), 1)]);
        let told: Vec<_> = several.consumers().into_iter().map(|own| (own.destination, own.busy_seconds)).collect();
        assert_eq!(told, [(Some("one".to_owned()), 1.0), (Some("two".to_owned()), 2.0)]);
        let sum = several.consumer().unwrap();
        assert_eq!((sum.destination, sum.busy_seconds, sum.rows), (None, 2.0, 10));
        let alone = measured(&[("one", 1.0)]);
        assert!(alone.consumers().is_empty() && alone.writers()[0].destination.is_none());
        assert_eq!(alone.consumer().unwrap().rows, 5);
    }

    #[test]
    fn only_those_that_keep_blocks_are_asked_whether_they_starve() {
        let (waits, works, lets_go) = ((true, true), (true, false), (false, false));
        assert!(starved(&[waits]) && starved(&[waits, waits]));
        assert!(starved(&[waits, lets_go]), "blocks never come home otherwise");
        assert!(!starved(&[waits, works]), "one that works gives blocks back");
        assert!(!starved(&[lets_go]) && !starved(&[works, lets_go]));
    }
}
