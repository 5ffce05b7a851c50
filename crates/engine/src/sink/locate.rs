//! The sink of a flow that only looks for rows: a consumer has found their positions, and now wants their places. The rows
//! themselves are dropped.

use std::sync::{Arc, Mutex};

use headrace_types::{CoreError, Location};

use super::{Origin, Placed, Sink, Writer};
use crate::locate::{Counted, locate};
use crate::meter::StreamMeter;
use crate::outcome::lock;
use crate::report::{SinkReport, SliceReport};
use crate::row_position::RowPosition;
use crate::spec::{FlowSpec, SliceSpec};
use crate::transforms::Transforms;

/// Finds the places of rows.
pub struct LocateSink(Arc<Shared>);

struct Shared {
    flow: Arc<FlowSpec>,
    wanted: Vec<RowPosition>,
    ended: Vec<SliceReport>,
    /// The only columns that have to convert in a row; none for all.
    columns: Option<Vec<usize>>,
    transforms: Arc<Transforms>,
    report: Mutex<SinkReport>,
}

impl LocateSink {
    /// A sink that finds the places of the rows `wanted`; `ended` are accounts of the slices before them. `columns`: those of
    /// the layout that have to convert in a row, if not all.
    pub fn new(
        flow: &Arc<FlowSpec>,
        wanted: &[RowPosition],
        ended: &[SliceReport],
        columns: Option<Vec<usize>>,
        transforms: Arc<Transforms>,
    ) -> Self {
        let report = SinkReport { places: Some(vec![None; wanted.len()]), ..SinkReport::default() };
        LocateSink(Arc::new(Shared {
            flow: flow.clone(),
            wanted: wanted.to_vec(),
            ended: ended.to_vec(),
            columns,
            transforms,
            report: Mutex::new(report),
        }))
    }
}

impl Sink for LocateSink {
    fn writer(&self) -> Box<dyn Writer> {
        Box::new(LocateWriter { shared: self.0.clone(), next: RowPosition::first(0) })
    }

    fn wanted_columns(&self) -> Option<Vec<usize>> {
        self.0.columns.clone()
    }

    fn hashes_texts(&self) -> bool {
        false
    }

    fn report(&self) -> SinkReport {
        lock(&self.0.report).clone()
    }
}

struct LocateWriter {
    shared: Arc<Shared>,
    /// Of the first row of the next batch.
    next: RowPosition,
}

impl LocateWriter {
    fn set_place(&self, index: usize, place: Option<Location>) {
        if let Some(places) = &mut lock(&self.shared.report).places {
            places[index] = place;
        }
    }
}

impl Writer for LocateWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        self.next = RowPosition::first(slice.number);
        Ok(true)
    }

    fn write(&mut self, rows: Placed, origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let Placed { batch, .. } = rows;
        let rows = batch.num_rows() as u64;
        // The place is found by parsing the block once more: its memory should be free by then.
        drop(batch);
        let (begin, end) = (self.next, self.next.plus(rows));
        let counted =
            Counted { columns: self.shared.columns.as_deref(), transforms: &self.shared.transforms, place: None };
        for (index, wanted) in self.shared.wanted.iter().enumerate().filter(|(_, row)| (begin..end).contains(row)) {
            let row = wanted.number() - begin.number();
            self.set_place(index, locate(&self.shared.flow, &self.shared.ended, origin, row, counted)?);
        }
        self.next = end;
        let mut report = lock(&self.shared.report);
        report.batches += 1;
        report.rows += rows;
        Ok(true)
    }
}
