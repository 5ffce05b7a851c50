//! Long rows on their way to servers that take their time, in a process of their own: its peak memory is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "hostile_postgres/fake.rs"]
mod fake;

use std::io::Write as _;
use std::time::Duration;

use headrace_engine::Flow;
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_types::{ErrorKind, Layout};
use serde_json::json;

use fake::{complete, message, ready, request, session};

const MEGABYTE: usize = 1 << 20;

/// Peak resident memory of this process.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn one_long_row_at_a_time_is_on_its_way() {
    headrace_engine::return_large_memory(); // as the command line does in its own process
    let server = session(|mut stream| {
        while let Some((tag, body)) = request(&mut stream) {
            let answer = match tag {
                b'Q' if body.starts_with(b"COPY") => {
                    stream.write_all(&message(b'G', &[1, 0, 0])).unwrap();
                    std::thread::sleep(Duration::from_secs(2));
                    continue;
                }
                b'Q' => [complete("BEGIN"), ready()].concat(),
                b'c' => [complete("COPY 0"), ready()].concat(),
                _ => continue,
            };
            stream.write_all(&answer).unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut file = std::fs::File::create(&path).unwrap();
    for _ in 0..12 {
        let mut row = vec![b'x'; 34 * MEGABYTE];
        row[34 * MEGABYTE - 1] = b'\n';
        file.write_all(&row).unwrap();
    }
    let layout = json!({"delimiter": "|", "columns": [{"name": "a", "type": {"kind": "string"}, "nullable": false}]});
    let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
    let files = vec![path.display().to_string()];
    let slicing =
        plan_slices(&SlicingSpec { files, slice_bytes: MEGABYTE as u64, layout: columns, ..SlicingSpec::default() })
            .unwrap();
    let slices: Vec<u32> = slicing.slices.iter().map(|slice| slice.number).collect();
    let spec = json!({
        "name": "test", "layout": layout, "streams": 8,
        "source": {"files": slicing.files, "slices": slicing.slices},
        "memory": {"block_bytes": 256 << 10, "blocks": 8, "max_row_bytes": 64 * MEGABYTE},
        "rejects": {"limit": 0, "folder": folder.path(), "file_stem": "rejected"},
        "sink": {"kind": "postgres", "commit": "unit", "commit_slices": null,
            "connection": {"hosts": [{"host": "127.0.0.1", "port": server.hosts[0].port}], "database": "d",
                "user": "u", "application_name": "a", "connect_timeout_seconds": 10, "tls": {"mode": "disable"}},
            "columns": [{"source": "a", "form": "text"}],
            "tables": [{"name": "t", "partition": "", "slices": slices, "owned": false, "begin": "BEGIN",
                "copy": "COPY t FROM STDIN (FORMAT binary)"}]},
    });
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    let before = peak_megabytes();
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = flow.join(Duration::from_secs(60)).expect("the flow hangs");
    // The server does not count: the end is an error, after all rows of a writer.
    let error = report.error.unwrap();
    assert!(error.kind == ErrorKind::Internal && error.what.contains("counted other rows"), "{error:?}");
    // A row in the large-row memory, one in a frame, one in the server of this process, and what their growth takes.
    let peak = peak_megabytes() - before;
    assert!(peak < 270, "{peak} MB");
}
