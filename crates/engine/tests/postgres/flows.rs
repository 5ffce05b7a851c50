//! Flows into real servers.

use std::time::{Duration, Instant};

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_types::{ErrorKind, Layout};
use serde_json::json;

use crate::server::{Server, servers};

const WRITER: &str = "headrace flow";

/// A flow of one stream over texts of `id|name`, each of which goes into a table of its own, `names[i]`.
fn flow(server: &Server, folder: &std::path::Path, texts: &[&str], names: &[&str], commit: &str) -> Flow {
    let files: Vec<String> =
        (0..texts.len()).map(|index| folder.join(index.to_string()).display().to_string()).collect();
    for (file, text) in std::iter::zip(&files, texts) {
        std::fs::write(file, text).unwrap();
    }
    let layout = json!({"delimiter": "|", "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": false},
        {"name": "name", "type": {"kind": "string"}, "nullable": false}]});
    let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
    let slicing = plan_slices(&SlicingSpec { files, slice_bytes: 1 << 30, layout: columns }).unwrap();
    let tables = std::iter::zip(1.., names).map(|(slice, name)| {
        json!({"name": name, "partition": "", "slices": [slice], "owned": false, "begin": "BEGIN",
            "copy": format!("COPY {name} (id, name) FROM STDIN (FORMAT binary)")})
    });
    let spec = json!({
        "name": "test", "layout": layout, "streams": 1,
        "source": {"files": slicing.files, "slices": slicing.slices},
        "memory": {"block_bytes": 4096, "blocks": 4, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 0, "folder": folder, "file_stem": "rejected"},
        "sink": {"kind": "postgres", "commit": commit, "commit_slices": null,
            "connection": {"hosts": [{"host": "127.0.0.1", "port": server.port}], "database": "postgres",
                "user": "headrace", "application_name": WRITER, "connect_timeout_seconds": 10},
            "columns": [{"source": "id", "form": "int8"}, {"source": "name", "form": "text"}],
            "tables": tables.collect::<Vec<_>>()},
    });
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    Flow::new(spec).unwrap()
}

fn run(flow: &Flow) -> FlowReport {
    flow.start().unwrap();
    flow.join(Duration::from_secs(30)).expect("the flow hangs")
}

/// Fails if a writer of a flow is still there after a while.
fn no_writer_is_left(server: &Server) {
    let mut connection = server.connect();
    let until = Instant::now() + Duration::from_secs(5);
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'";
    while connection.query(sql, &[Some(WRITER)]).unwrap().rows[0][0].as_deref() != Some("0") {
        assert!(Instant::now() < until, "a writer keeps its locks, although nobody will commit its rows");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(server: &Server, table: &str) -> String {
    server.connect().query(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().rows[0][0].clone().unwrap()
}

#[test]
fn writers_that_wait_for_the_commit_end_with_a_flow_that_failed_or_was_cancelled() {
    for server in servers() {
        let folder = tempfile::tempdir().unwrap();
        server
            .connect()
            .execute("CREATE TABLE waits_a (id bigint, name text); CREATE TABLE waits_b (LIKE waits_a)")
            .unwrap();
        let (good, bad) = ("1|one\n2|two\n3|three\n", "x|bad\n");

        let failed = flow(server, folder.path(), &[good, bad], &["waits_a", "waits_b"], "together");
        let report = run(&failed);
        assert_eq!((report.status, report.slices.len()), (Status::Failed, 1), "{report:?}");
        no_writer_is_left(server);
        assert!(failed.commit().is_err());

        let cancelled = flow(server, folder.path(), &[good, "4|four\n"], &["waits_a", "waits_b"], "together");
        assert_eq!(run(&cancelled).status, Status::Ok);
        cancelled.cancel("the accounts do not balance");
        no_writer_is_left(server);
        assert_eq!(cancelled.commit().unwrap_err().kind, ErrorKind::Cancelled);
        assert_eq!(count(server, "waits_a"), "0");

        let whole = flow(server, folder.path(), &[good, "4|four\n"], &["waits_a", "waits_b"], "together");
        assert_eq!(run(&whole).status, Status::Ok);
        whole.commit().unwrap();
        assert_eq!((count(server, "waits_a").as_str(), count(server, "waits_b").as_str()), ("3", "1"));
        no_writer_is_left(server);
    }
}
