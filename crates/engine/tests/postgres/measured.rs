//! What a flow measures of its connections while it runs.

use std::path::Path;
use std::time::{Duration, Instant};

use headrace_engine::Flow;
use headrace_engine::measure::{Doing, Measure, Transport, WriterMeasure};
use headrace_engine::report::Status;
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_types::Layout;
use serde_json::json;

use crate::patience::HANG;
use crate::server::{Server, servers};

/// Longest wait for anything.
/// A lock that a trigger asks for.
const KEY: u32 = 77;

/// A flow of `files` texts of `id|name` into one table, with one stream for each file.
fn flow(server: &Server, folder: &Path, host: &str, table: &str, text: &str, files: usize, streams: usize) -> Flow {
    let files: Vec<String> = (0..files).map(|index| folder.join(index.to_string()).display().to_string()).collect();
    files.iter().for_each(|file| std::fs::write(file, text).unwrap());
    let layout = json!({"delimiter": "|", "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": false},
        {"name": "name", "type": {"kind": "string"}, "nullable": false}]});
    let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
    let slicing =
        plan_slices(&SlicingSpec { files, slice_bytes: 1 << 30, layout: columns, ..SlicingSpec::default() }).unwrap();
    let slices: Vec<u32> = slicing.slices.iter().map(|slice| slice.number).collect();
    let spec = json!({
        "name": "test", "layout": layout, "streams": streams,
        "source": {"files": slicing.files, "slices": slicing.slices},
        "memory": {"block_bytes": 65536, "blocks": 2 * streams, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 0, "folder": folder, "file_stem": "rejected"},
        "sink": {"kind": "postgres", "commit": "unit", "commit_slices": null,
            "connection": {"hosts": [{"host": host, "port": server.port}], "database": "postgres",
                "user": "headrace", "application_name": "headrace measured", "connect_timeout_seconds": 10},
            "columns": [{"source": "id", "form": "int8"}, {"source": "name", "form": "text"}],
            "tables": [{"name": table, "partition": "", "slices": slices, "owned": false, "begin": "BEGIN",
                "copy": format!("COPY {table} (id, name) FROM STDIN (FORMAT binary)")}]},
    });
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    Flow::new(spec).unwrap()
}

fn wait_until(flow: &Flow, is_so: impl Fn(&Measure) -> bool) -> Measure {
    let start = Instant::now();
    loop {
        let measure = flow.measure();
        if is_so(&measure) {
            return measure;
        }
        assert!(start.elapsed() < HANG, "{measure:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Seconds of everything that a connection can be at.
fn seconds(writer: &WriterMeasure) -> f64 {
    writer.busy_seconds + writer.wait_input_seconds + writer.wait_output_seconds + writer.wait_answer_seconds
}

/// What changes while everything hangs: of the time of the stream's writing, of the times of its connection.
fn hanging(flow: &Flow) -> (f64, WriterMeasure, WriterMeasure) {
    let first = flow.measure();
    std::thread::sleep(Duration::from_millis(400));
    let last = flow.measure();
    assert_eq!(last.streams[0].doing, Doing::WaitDestination, "{last:?}");
    let waited = |measure: &Measure| measure.streams[0].stages.write.wait_output_seconds;
    (waited(&last) - waited(&first), first.writers[0].clone(), last.writers[0].clone())
}

#[test]
fn a_server_that_does_not_answer_is_waited_for() {
    for server in servers() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = server.connect();
        other.execute("CREATE TABLE locked (id bigint, name text)").unwrap();
        other.execute("BEGIN; LOCK TABLE locked").unwrap();
        let flow = flow(server, folder.path(), "127.0.0.1", "locked", "1|one\n", 1, 1);
        flow.start().unwrap();
        wait_until(&flow, |measure| measure.writers.first().is_some_and(|writer| writer.wait_answer_seconds > 0.05));
        let (waited, first, last) = hanging(&flow);
        assert!(waited >= 0.39, "{waited}");
        assert!(last.wait_answer_seconds - first.wait_answer_seconds >= 0.39, "{first:?} {last:?}");
        assert_eq!((last.number, last.transport, last.frames), (1, Transport::Tcp, 0));
        other.execute("COMMIT").unwrap();
        assert_eq!(flow.join(HANG).expect("the flow hangs").status, Status::Ok);
    }
}

#[test]
fn a_server_that_takes_nothing_fills_the_socket() {
    for server in servers() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = server.connect();
        other
            .execute(&format!(
                "CREATE TABLE slow (id bigint, name text); \
                 CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ \
                 BEGIN PERFORM pg_advisory_xact_lock({KEY}); RETURN new; END $$; \
                 CREATE TRIGGER slow BEFORE INSERT ON slow FOR EACH ROW WHEN (new.id = 0) EXECUTE FUNCTION slow()"
            ))
            .unwrap();
        let row = |id| format!("{id}|{}\n", "x".repeat(4000));
        let text: String = (0..8000).map(row).collect(); // 32 MB, more than all buffers between
        for (host, transport) in [("127.0.0.1", Transport::Tcp), (server.folder.to_str().unwrap(), Transport::Unix)] {
            other.query(&format!("SELECT pg_advisory_lock({KEY})"), &[]).unwrap();
            let flow = flow(server, folder.path(), host, "slow", &text, 1, 1);
            flow.start().unwrap();
            wait_until(&flow, |measure| measure.writers.first().is_some_and(|writer| writer.wait_output_seconds > 0.2));
            let start = Instant::now();
            // The system makes its buffers larger for a while.
            let (waited, first, last) = loop {
                let found = hanging(&flow);
                if found.1.bytes == found.2.bytes {
                    break found;
                }
                assert!(start.elapsed() < HANG, "{found:?}");
            };
            assert!(waited >= 0.39, "{waited}");
            assert!(last.wait_output_seconds - first.wait_output_seconds >= 0.39, "{first:?} {last:?}");
            assert_eq!((last.transport, last.tcp.is_some()), (transport, host == "127.0.0.1"));
            let sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace measured w1'";
            assert_eq!(other.query(sessions, &[]).unwrap().rows[0][0], Some(last.process_id.to_string()));
            if let Some(tcp) = last.tcp {
                assert!(tcp.not_sent_bytes.unwrap() > 0, "{tcp:?}");
                assert!(tcp.receive_window_limited_seconds.unwrap() > 0.1, "{tcp:?}");
            }
            other.query(&format!("SELECT pg_advisory_unlock({KEY})"), &[]).unwrap();
            assert_eq!(flow.join(HANG).expect("the flow hangs").status, Status::Ok);

            // Behind the end nothing goes on.
            let ended = flow.measure().writers;
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(seconds(&ended[0]), seconds(&flow.measure().writers[0]));
            assert!(ended[0].bytes > 32_000_000 && ended[0].frames >= 240, "{ended:?}");
            if let Some(tcp) = ended[0].tcp {
                assert!(tcp.delivery_rate_bytes.unwrap() > 0, "{tcp:?}");
            }
        }
    }
}

/// With more streams than processors the caller sends.
#[test]
fn connections_have_as_much_time_as_there_was() {
    let processors = std::thread::available_parallelism().unwrap().get();
    for server in servers() {
        let mut other = server.connect();
        other.execute("CREATE TABLE timed (id bigint, name text)").unwrap();
        let text: String = (0..5000).map(|id| format!("{id}|{}\n", "x".repeat(100))).collect();
        for streams in [1, processors + 1] {
            let folder = tempfile::tempdir().unwrap();
            let flow = flow(server, folder.path(), "127.0.0.1", "timed", &text, 2 * streams, streams);
            let start = Instant::now();
            flow.start().unwrap();
            let report = flow.join(HANG).expect("the flow hangs");
            let lasted = start.elapsed().as_secs_f64();
            assert_eq!(report.status, Status::Ok, "{report:?}");
            let writers = flow.measure().writers;
            assert!(!writers.is_empty() && writers.len() <= streams, "one for all units of a stream: {writers:?}");
            let bytes: u64 = writers.iter().map(|writer| writer.bytes).sum();
            let rows = 2 * streams as u64 * 5000;
            assert!(bytes > rows * 118 && bytes < rows * 130, "{bytes} of {rows} rows");
            for writer in &writers {
                assert!(seconds(writer) <= lasted, "{writer:?} in {lasted}");
                assert!(writer.busy_seconds > 0.0 && writer.wait_answer_seconds > 0.0, "{writer:?}");
                assert!(writer.frames >= 1 && writer.process_id > 0, "{writer:?}");
            }
        }
    }
}
