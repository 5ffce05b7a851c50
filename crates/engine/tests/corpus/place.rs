//! A folder with one file, flows over it, and what they leave.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use headrace_engine::Flow;
use headrace_engine::report::{AlsoBad, FlowReport, LocatedReject};
use headrace_engine::slices::{Slicing, SlicingSpec, plan_slices};
use headrace_engine::spec::{FlowSpec, MemorySpec, RejectSpec, SinkSpec, SourceSpec};
use headrace_types::{CoreError, Layout};
use tempfile::TempDir;

use crate::drive;
use crate::reference::{Outcome, Value};

/// Longest wait for a flow: longer than a busy machine stands still.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with one file, written over and over, and what its flows leave.
pub struct Place {
    folder: TempDir,
    file: File,
}

impl Place {
    /// With that of this thread.
    pub fn with(work: impl FnOnce(&Place)) {
        thread_local! {
            static PLACE: Place = {
                let folder = TempDir::new().unwrap();
                Place { file: File::create(folder.path().join("data")).unwrap(), folder }
            };
        }
        PLACE.with(work);
    }

    /// Writes the file and cuts it.
    pub fn write(&self, content: &[u8], layout: &Layout, slice_bytes: u64) -> Result<Slicing, CoreError> {
        self.file.set_len(0).unwrap();
        self.file.write_all_at(content, 0).unwrap();
        let files = vec![self.path("data")];
        plan_slices(&SlicingSpec { files, slice_bytes, layout: layout.clone(), ..SlicingSpec::default() })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a flow of one stream; another thread takes the batches and keeps none.
    pub fn run(&self, layout: &Layout, slicing: &Slicing, memory: MemorySpec) -> (Vec<Vec<Value>>, FlowReport) {
        let source = SourceSpec::of_files(&slicing.files, &slicing.slices);
        let flow = Flow::new(FlowSpec {
            sink: SinkSpec::Arrow {
                columns: layout.all_columns().map(|(name, _)| name.to_owned()).collect(),
                position: None,
                place_column: None,
            },
            rejects: RejectSpec { folder: self.path(""), file_stem: "rejected".to_owned(), ..RejectSpec::default() },
            ..FlowSpec::plain("fuzz", layout.clone(), source, 1, memory)
        })
        .unwrap();
        let reader = flow.take_reader().unwrap();
        flow.start().unwrap();
        let layout = layout.clone();
        // The first error is the last item, and is in the report as well.
        let batches = reader.map_while(Result::ok);
        let consumer = std::thread::spawn(move || batches.flat_map(|batch| drive::rows(&layout, &batch)).collect());
        let report = flow.join(PATIENCE).expect("the flow hangs");
        (consumer.join().unwrap(), report)
    }

    /// The merged rejects, without messages.
    pub fn rejects(&self, report: &FlowReport) -> Vec<LocatedReject> {
        let lines = self.output(report, "rejected.jsonl");
        let parsed = lines.split_inclusive(|&byte| byte == b'\n').map(|line| serde_json::from_slice(line).unwrap());
        parsed.map(|reject| LocatedReject { message: String::new(), ..reject }).collect()
    }

    /// A merged file of the flow; nothing when it has none.
    pub fn output(&self, report: &FlowReport, name: &str) -> Vec<u8> {
        let path = self.path(name);
        if report.rejects.files.contains(&path) { std::fs::read(path).unwrap() } else { vec![] }
    }
}

/// What the merged files of rejects hold. Messages are tested elsewhere and empty here.
pub fn located(layout: &Layout, slicing: &Slicing, expected: &[Outcome]) -> (Vec<LocatedReject>, Vec<u8>) {
    let (mut rejects, mut bad, mut lines) = (vec![], vec![], 0);
    for outcome in expected {
        for reject in &outcome.rejects {
            let column = reject.column.map(|index| &layout.columns[index]);
            let also = reject.also.iter().map(|other| AlsoBad {
                column: layout.columns[other.column].name.clone(),
                rule: other.rule.to_string(),
                code: other.rule.code().to_owned(),
                byte: other.byte,
            });
            let also = also.collect();
            rejects.push(LocatedReject {
                destinations: None,
                number: rejects.len() as u64 + 1,
                file_number: 1,
                row_byte: reject.row_byte,
                row_bytes: reject.row.len() as u64,
                also,
                file: slicing.files[0].path.clone(),
                row: lines + reject.line + 1,
                byte: reject.byte,
                column: column.map(|column| column.name.clone()),
                column_number: reject.column.map(|index| index + 1),
                column_type: column.map(|column| column.column_type.to_string()),
                value: shown(&reject.value),
                rule: reject.rule.to_string(),
                code: reject.rule.code().to_owned(),
                message: String::new(),
                bad_byte: bad.len() as u64,
                bad_bytes: reject.row.len() as u64,
            });
            bad.extend_from_slice(&reject.row);
            if !reject.row.is_empty() && !reject.row.ends_with(&reject.row_end) {
                bad.extend_from_slice(&reject.row_end);
            }
        }
        lines += outcome.lines;
    }
    (rejects, bad)
}

/// Bytes as text; what is not UTF-8 as \xNN.
fn shown(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let Err(error) = std::str::from_utf8(bytes) {
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        let (invalid, rest) = rest.split_at(error.error_len().unwrap_or(rest.len()));
        text += std::str::from_utf8(valid).unwrap();
        text.extend(invalid.iter().map(|byte| format!("\\x{byte:02X}")));
        bytes = rest;
    }
    text + std::str::from_utf8(bytes).unwrap()
}
