//! The meters of all connections of a sink.

use std::sync::{Arc, Mutex};

use super::writer_meter::{Transport, WriterMeter};
use crate::measure::WriterMeasure;
use crate::outcome::lock;

/// So many are kept; beyond, those that have ended are dropped, the first one first. A load that commits often opens a connection
/// for each unit.
const KEPT: usize = 1000;

/// In the order in which they were opened.
#[derive(Default)]
pub struct Writers(Mutex<Vec<Arc<WriterMeter>>>);

impl Writers {
    /// The meter of a connection that has just been opened.
    pub fn add(&self, number: usize, process_id: i32, transport: Transport) -> Arc<WriterMeter> {
        let meter = Arc::new(WriterMeter::new(number, process_id, transport));
        let mut all = lock(&self.0);
        if all.len() >= KEPT
            && let Some(ended) = all.iter().position(|meter| meter.has_ended())
        {
            all.remove(ended);
        }
        all.push(meter.clone());
        meter
    }

    /// All of them, up to now.
    pub fn measure(&self) -> Vec<WriterMeasure> {
        // Cloned: nobody who opens a connection is kept waiting.
        let all = lock(&self.0).clone();
        all.iter().map(|meter| meter.measure()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_the_ended_ones_are_dropped_first() {
        let writers = Writers::default();
        let meters: Vec<_> = (1..=KEPT).map(|number| writers.add(number, 0, Transport::Unix)).collect();
        let numbers = || writers.measure().iter().map(|writer| writer.number).collect::<Vec<_>>();
        writers.add(KEPT + 1, 0, Transport::Unix);
        assert_eq!(numbers(), (1..=KEPT + 1).collect::<Vec<_>>(), "all of them are open");
        meters[6].end(|| None);
        meters[4].end(|| None);
        writers.add(KEPT + 2, 0, Transport::Unix);
        assert!(!numbers().contains(&5) && numbers().contains(&7));
        assert_eq!(numbers().len(), KEPT + 1);
    }
}
