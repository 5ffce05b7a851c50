//! Flows over files of a temporary folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, LocatedReject, SliceReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{
    CommittedSlice, Compression, FlowSpec, KeepRejects, MemorySpec, RejectSpec, RoutingSpec, SinkSpec, SourceSpec,
    TransformSpec,
};
use headrace_types::{Column, ColumnType, CoreError, Layout};
use tempfile::TempDir;

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// id int64 | name string | amount decimal(15,2) | day date, nullable.
pub fn layout() -> Layout {
    let column = |name: &str, column_type, nullable| Column::new(name.to_owned(), column_type, nullable);
    Layout {
        delimiter: "|".to_owned(),
        columns: vec![
            column("id", ColumnType::Int64, false),
            column("name", ColumnType::String, false),
            column("amount", ColumnType::Decimal { precision: 15, scale: 2 }, false),
            column("day", ColumnType::Date, true),
        ],
        ..Layout::default()
    }
}

/// Row `id` of the test data, without row end.
pub fn row(id: u64) -> String {
    let day = if id.is_multiple_of(7) { String::new() } else { format!("2024-01-{:02}", id % 28 + 1) };
    format!("{id}|name {}|{}.{:02}|{day}", "n".repeat((id % 23) as usize), id * 37 % 9973, id % 100)
}

/// Rows `from..to`.
pub fn rows(from: u64, to: u64) -> String {
    (from..to).map(|id| row(id) + "\n").collect()
}

/// What a test wants done; the fields are changed at will before [`Job::flow`].
pub struct Job {
    pub folder: TempDir,
    pub files: Vec<PathBuf>,
    pub layout: Layout,
    pub slice_bytes: u64,
    pub streams: usize,
    pub memory: MemorySpec,
    pub limit: u64,
    pub keep: KeepRejects,
    pub null_sink: bool,
    pub committed: HashMap<u32, CommittedSlice>,
    pub transforms: Vec<TransformSpec>,
    pub routing: Option<RoutingSpec>,
    pub compression: Compression,
    pub needs_last_row_end: Option<bool>,
}

impl Job {
    /// A flow over one file.
    pub fn of(content: impl AsRef<[u8]>) -> Self {
        Job::of_files(&[content.as_ref()])
    }

    /// A flow over files, in this order.
    pub fn of_files(contents: &[&[u8]]) -> Self {
        let folder = TempDir::new().unwrap();
        let files: Vec<PathBuf> =
            (0..contents.len()).map(|index| folder.path().join(format!("data.{index}"))).collect();
        for (path, content) in std::iter::zip(&files, contents) {
            std::fs::write(path, content).unwrap();
        }
        let memory = MemorySpec { block_bytes: 4096, blocks: 8, max_row_bytes: 1 << 20 };
        Job {
            folder,
            files,
            layout: layout(),
            slice_bytes: 1 << 30,
            streams: 2,
            memory,
            limit: 0,
            keep: KeepRejects::Files,
            null_sink: true,
            committed: HashMap::new(),
            transforms: Vec::new(),
            routing: None,
            compression: Compression::None,
            needs_last_row_end: None,
        }
    }

    /// The same with an arrow sink.
    pub fn arrow(mut self) -> Self {
        self.null_sink = false;
        self
    }

    /// Cuts the files and plans the flow.
    pub fn plan(&self) -> Result<FlowSpec, CoreError> {
        let files = self.files.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
        let slicing = plan_slices(&SlicingSpec {
            files,
            slice_bytes: self.slice_bytes,
            layout: self.layout.clone(),
            compression: self.compression,
            wait_seconds: PATIENCE.as_secs(),
            needs_last_row_end: self.needs_last_row_end,
            ..SlicingSpec::default()
        })?;
        let columns = self.layout.columns.iter().map(|column| column.name.clone()).collect();
        let source = SourceSpec::of_files(&slicing.files, &slicing.slices);
        let source = SourceSpec { committed: self.committed.clone(), ..source };
        Ok(FlowSpec {
            transforms: self.transforms.clone(),
            routing: self.routing.clone(),
            sink: if self.null_sink {
                SinkSpec::Null
            } else {
                SinkSpec::Arrow { columns, position: None, place_column: None }
            },
            rejects: RejectSpec {
                limit: Some(self.limit),
                folder: self.folder.path().to_str().unwrap().to_owned(),
                file_stem: "rejected".to_owned(),
                keep: self.keep,
                ..RejectSpec::default()
            },
            ..FlowSpec::plain("test", self.layout.clone(), source, self.streams, self.memory.clone())
        })
    }

    /// The flow, not started.
    pub fn flow(&self) -> Flow {
        Flow::new(self.plan().unwrap()).unwrap()
    }

    /// Runs a flow with a null sink to its end, well or not.
    pub fn run(&self) -> FlowReport {
        assert!(self.null_sink);
        let flow = self.flow();
        flow.start().unwrap();
        let report = join(&flow);
        check_report(&report, self.memory.blocks);
        report
    }

    /// Runs a flow with an arrow sink; a thread takes the batches.
    pub fn run_arrow(&self) -> (Result<Vec<String>, CoreError>, FlowReport) {
        assert!(!self.null_sink);
        let flow = self.flow();
        let reader = flow.take_reader().unwrap();
        assert!(flow.take_reader().is_none());
        flow.start().unwrap();
        let consumer = std::thread::spawn(move || {
            let mut all = vec![];
            for batch in reader {
                match batch {
                    Ok(batch) => all.extend(values(&batch)),
                    Err(error) => return Err(core_error(error)),
                }
            }
            Ok(all)
        });
        join(&flow);
        let found = consumer.join().unwrap();
        let report = join(&flow); // again: the consumer took the last batches after the last stream had ended
        check_report(&report, self.memory.blocks);
        assert_eq!(found.is_ok(), report.status == Status::Ok);
        (found, report)
    }

    /// The merged `.jsonl` file.
    pub fn reject_lines(&self) -> Vec<LocatedReject> {
        let text = std::fs::read_to_string(self.folder.path().join("rejected.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The merged `.bad` file.
    pub fn bad_bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("rejected.bad")).unwrap()
    }

    /// Names in the folder besides the data.
    pub fn other_files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("data.")).collect();
        names.sort();
        names
    }

    pub fn file(&self, index: usize) -> &Path {
        &self.files[index]
    }
}

/// Waits for the end of a flow.
pub fn join(flow: &Flow) -> FlowReport {
    flow.join(PATIENCE).expect("the flow hangs")
}

/// The engine's error behind Arrow's.
pub fn core_error(error: arrow_schema::ArrowError) -> CoreError {
    match error {
        arrow_schema::ArrowError::ExternalError(inner) => *inner.downcast::<CoreError>().unwrap(),
        other => panic!("{other}"),
    }
}

/// What holds for every flow that ended.
pub fn check_report(report: &FlowReport, blocks: usize) {
    assert_eq!(report.status == Status::Ok, report.error.is_none());
    for slice in &report.slices {
        assert_eq!(slice.lines, slice.rows + slice.skipped, "{slice:?}");
        assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected, "{slice:?}");
    }
    if report.status == Status::Ok {
        let sum = |value: fn(&SliceReport) -> u64| report.slices.iter().map(value).sum::<u64>();
        assert_eq!(report.sink.rows, sum(|slice| if slice.committed { 0 } else { slice.out }));
        assert_eq!(report.rejects.count, sum(|slice| slice.rejected));
        assert_eq!(report.rejects.by_rule.values().sum::<u64>(), report.rejects.count);
        let read = |value: u64, slice: &SliceReport| if slice.stream.is_some() { value } else { 0 };
        let sum =
            |value: fn(&SliceReport) -> u64| report.slices.iter().map(|slice| read(value(slice), slice)).sum::<u64>();
        assert_eq!(report.streams.iter().map(|stream| stream.rows).sum::<u64>(), sum(|slice| slice.rows));
        assert_eq!(report.streams.iter().map(|stream| stream.bytes).sum::<u64>(), sum(|slice| slice.bytes));
        assert_eq!(report.streams.iter().map(|stream| stream.slices).sum::<u64>(), sum(|_| 1));
    }
    let memory = &report.memory;
    assert!(memory.peak_blocks <= blocks + memory.overdraft_blocks, "{memory:?}");
    if report.columns.is_some() {
        assert_eq!(memory.overdraft_blocks, 0, "the null sink keeps nothing");
    }
}

/// Rows of a batch in the form of [`row`]; NULL as nothing.
pub fn values(batch: &RecordBatch) -> Vec<String> {
    let id = batch.column(0).as_primitive::<Int64Type>();
    let name = batch.column(1).as_string_view();
    let amount = batch.column(2).as_primitive::<Decimal64Type>();
    let day = batch.column(3).as_primitive::<Date32Type>();
    let one = |index: usize| {
        let day = if day.is_null(index) {
            String::new()
        } else {
            format!("2024-01-{:02}", day.value(index) - 19_722) // all days of the test data are in this month
        };
        let amount = amount.value(index);
        format!("{}|{}|{}.{:02}|{day}", id.value(index), name.value(index), amount / 100, amount % 100)
    };
    (0..batch.num_rows()).map(one).collect()
}

/// Sorted copy.
pub fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Lines of a text, sorted.
pub fn sorted_lines(text: &str) -> Vec<String> {
    sorted(text.lines().map(str::to_owned).collect())
}
