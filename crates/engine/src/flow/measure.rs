//! The live measurement of a flow.

use super::Flow;
use crate::measure::Measure;
use crate::outcome::lock;

impl Flow {
    /// Everything that is known at this moment. Unlike [`Flow::snapshot`] it asks the system about the thread of every stream,
    /// about 5 microseconds each: to be called about once a second. After the end it equals the report.
    pub fn measure(&self) -> Measure {
        let shared = &self.shared;
        // Cloned: a stream that starts or ends is not kept waiting while the system is asked.
        let meters = lock(&shared.meters).clone();
        Measure {
            progress: self.snapshot(),
            streams: meters.iter().map(|meter| meter.measure()).collect(),
            writers: shared.destinations.writers(),
            sink: shared.destinations.consumer(),
            sinks: shared.destinations.consumers(),
            blocks_used: shared.blocks.lent(),
            blocks_total: shared.blocks.limit(),
        }
    }
}
