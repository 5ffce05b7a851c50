//! Commits inside a load: what is committed when a flow ends early is whole units, and a resumed flow completes it.

use std::collections::BTreeMap;
use std::time::Duration;

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::routed::{Dice, Load, PLACES, run, text_of};
use crate::server::{Server, servers};

/// Slices dealt into epochs, in the order of their numbers or in none.
fn epochs(dice: &mut Dice, load: &Load<'_>) -> Vec<Vec<u32>> {
    let count = 1 + dice.roll(6) as usize;
    let is_ordered = dice.roll(2) == 0;
    let mut epochs = vec![Vec::new(); count];
    for (index, slice) in load.rows.keys().enumerate() {
        let epoch = if is_ordered { index * count / load.rows.len() } else { dice.roll(count as u64) as usize };
        epochs[epoch].push(*slice);
    }
    epochs
}

/// A load of way `shared` in epochs, or of way `home` that commits behind every few rows.
fn load<'a>(server: &'a Server, dice: &mut Dice, text: &str, is_shared: bool) -> Load<'a> {
    let streams = 1 + dice.roll(5) as usize;
    let mut homes = Dice(dice.roll(1000));
    let mut home = |_: u32| homes.roll(PLACES as u64) as usize;
    let home: Option<&mut dyn FnMut(u32) -> usize> = if is_shared { None } else { Some(&mut home) };
    let mut load = Load::new(server, text, [7_000, 20_000][dice.roll(2) as usize], streams, home);
    if is_shared {
        load.spec["source"]["epochs"] = json!(epochs(dice, &load));
    } else {
        load.spec["sink"][["commit_rows", "commit_bytes"][dice.roll(2) as usize]] = json!(1 + dice.roll(500));
    }
    load
}

/// Rows in the tables and in the ledger: by partition.
fn counts(load: &Load<'_>) -> BTreeMap<String, (u64, u64)> {
    let number = |sql: String| load.query(&sql)[0][0].parse().unwrap();
    let count = |partition: String| {
        let rows = number(format!("SELECT count(*) FROM {}_{partition}", load.name));
        let told = number(format!(
            "SELECT coalesce(sum(loaded), 0) FROM {}_ledger WHERE partition = '{partition}'",
            load.name
        ));
        (partition, (rows, told))
    };
    load.partitions().into_iter().map(count).collect()
}

/// Every row once where it belongs, and every slice once in the ledger of each of its units.
fn check_complete(load: &Load<'_>) {
    let expected = load.expected();
    for (partition, (rows, told)) in counts(load) {
        let own = expected.iter().filter(|((own, _), _)| *own == partition);
        let mut wanted: Vec<String> =
            own.flat_map(|(_, rows)| rows.iter().map(|(id, name)| format!("{id}|{name}"))).collect();
        let mut found: Vec<String> = load
            .query(&format!("SELECT id, name FROM {}_{partition}", load.name))
            .iter()
            .map(|row| row.join("|"))
            .collect();
        wanted.sort();
        found.sort();
        assert!(wanted == found, "{partition}: {} rows instead of {}", found.len(), wanted.len());
        assert_eq!(rows, told, "{partition}");
    }
    let units = if load.spec["sink"]["way"] == "home" { 2 } else { PLACES };
    let whole = load.query(&format!("SELECT slice FROM {}_ledger GROUP BY slice HAVING count(*) = {units}", load.name));
    assert_eq!(whole.len(), load.rows.len());
}

/// The flow goes on behind what is committed.
fn resume(load: &Load<'_>) -> FlowReport {
    let ledger = load.query(&format!("SELECT slice, partition, loaded, rejected, skipped FROM {}_ledger", load.name));
    let mut slices: BTreeMap<String, Vec<(String, [u64; 3])>> = BTreeMap::new();
    for row in ledger {
        let numbers = [2, 3, 4].map(|column: usize| row[column].parse().unwrap());
        slices.entry(row[0].clone()).or_default().push((row[1].clone(), numbers));
    }
    let mut spec = load.spec.clone();
    let units = if spec["sink"]["way"] == "home" { 2 } else { PLACES };
    let mut committed = BTreeMap::new();
    for (slice, units_of_slice) in &slices {
        if units_of_slice.len() == units {
            let sum = |index: usize| units_of_slice.iter().map(|(_, numbers)| numbers[index]).sum::<u64>();
            committed.insert(slice, json!({"loaded": sum(0), "rejected": sum(1), "skipped": sum(2)}));
            continue;
        }
        for (partition, numbers) in units_of_slice {
            let table: &mut Value = match partition.strip_prefix('p') {
                Some(place) => &mut spec["sink"]["tables"][place.parse::<usize>().unwrap()],
                None => &mut spec["sink"]["strays"],
            };
            table["committed"][slice] = json!(numbers[0]);
        }
    }
    spec["source"]["committed"] = json!(committed);
    run(&Flow::new(serde_json::from_value(spec).unwrap()).unwrap())
}

#[test]
fn units_commit_behind_every_epoch_in_the_same_connections() {
    let mut dice = Dice(71);
    for server in servers() {
        for _ in 0..8 {
            let count = dice.roll(5000);
            let text = text_of(&mut dice, count);
            let mut load = load(server, &mut dice, &text, true);
            load.check(&load.run(), |_, _| true);
            check_complete(&load);
            let epochs: Vec<Vec<u32>> = serde_json::from_value(load.spec["source"]["epochs"].clone()).unwrap();
            let mut wanted: Vec<Vec<u32>> = epochs.into_iter().filter(|epoch| !epoch.is_empty()).collect();
            wanted.iter_mut().for_each(|epoch| epoch.sort_unstable());
            wanted.sort();
            for partition in load.partitions() {
                let sql = format!(
                    "SELECT string_agg(slice::text, ',' ORDER BY slice) FROM {}_ledger WHERE partition = '{partition}' GROUP BY unit",
                    load.name
                );
                let numbers = |row: &Vec<String>| row[0].split(',').map(|slice| slice.parse().unwrap()).collect();
                let mut found: Vec<Vec<u32>> = load.query(&sql).iter().map(numbers).collect();
                found.sort();
                assert_eq!(found, wanted, "one transaction of {partition} for each epoch");
            }
            load.no_writer_is_left();

            // The same with the number of the server's process in the place of the transaction's.
            load.partitions()
                .iter()
                .chain([&"ledger".to_owned()])
                .for_each(|table| load.execute(&format!("TRUNCATE {}_{table}", load.name)));
            let statement = load.spec["sink"]["commit_slices"].as_str().unwrap();
            load.spec["sink"]["commit_slices"] = json!(statement.replace("txid_current()", "pg_backend_pid()"));
            load.check(&load.run(), |_, _| true);
            let sql = format!("SELECT count(DISTINCT (partition, unit)) FROM {}_ledger", load.name);
            assert_eq!(load.query(&sql), [[PLACES.to_string()]]);
        }
    }
}

#[test]
fn a_unit_of_a_stream_commits_when_enough_went_into_it() {
    let mut dice = Dice(72);
    for server in servers() {
        let text = text_of(&mut dice, 4000);
        for (member, size) in
            [("commit_rows", 300), ("commit_bytes", 10_000), ("commit_rows", 1), ("commit_rows", 1 << 30)]
        {
            let mut load = Load::new(server, &text, 7_000, 1, Some(&mut |_| 1));
            load.spec["sink"][member] = json!(size);
            load.check(&load.run(), |_, _| true);
            check_complete(&load);
            // What each unit took, in their order, by slices; the strays' unit commits the same slices.
            let sizes = |slices: &[u32]| match member {
                "commit_rows" => slices.iter().map(|slice| load.rows[slice].len() as u64).sum::<u64>(),
                _ => {
                    let spec = load.spec["source"]["slices"].as_array().unwrap();
                    let bytes =
                        |slice: &&Value| slice["end_byte"].as_u64().unwrap() - slice["begin_byte"].as_u64().unwrap();
                    spec.iter()
                        .filter(|slice| slices.contains(&(slice["number"].as_u64().unwrap() as u32)))
                        .map(|slice| bytes(&slice))
                        .sum()
                }
            };
            let sql = format!(
                "SELECT string_agg(slice::text, ',') FROM {}_ledger WHERE partition = 'p1' GROUP BY unit ORDER BY unit",
                load.name
            );
            let numbers = |row: &Vec<String>| row[0].split(',').map(|slice| slice.parse().unwrap()).collect();
            let units: Vec<Vec<u32>> = load.query(&sql).iter().map(numbers).collect();
            let (_, full) = units.split_last().unwrap();
            for unit in full {
                assert!(sizes(unit) >= size, "{member} {size}: {unit:?}");
                let without_last = &unit[..unit.len() - 1];
                assert!(unit.len() == 1 || sizes(without_last) < size, "{member} {size}: {unit:?}");
            }
            assert_eq!(units.len() == load.rows.len(), size == 1, "a unit for every slice");
        }
    }
}

#[test]
fn what_is_committed_when_a_row_is_refused_stays_and_is_not_sent_again() {
    let mut dice = Dice(73);
    for server in servers() {
        for round in 0..12 {
            let mut text = text_of(&mut dice, 3000);
            // In the second half of the file, so that something is committed before now and then.
            let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
            let at = lines[lines.len() / 2 + dice.roll(lines.len() as u64 / 2 - 1) as usize];
            text.insert_str(at, &format!("{}|refused\n", [7, 150, 250, 450, 650][dice.roll(5) as usize]));
            let load = load(server, &mut dice, &text, round % 2 == 0);
            for partition in load.partitions() {
                load.execute(&format!(
                    "ALTER TABLE {}_{partition} ADD CONSTRAINT own CHECK (name <> 'refused')",
                    load.name
                ));
            }
            let error = load.run().error.expect("the row was not refused");
            assert_eq!(error.server.as_ref().map(|server| server.sqlstate.as_str()), Some("23514"), "{error:?}");
            load.no_writer_is_left();
            for (partition, (rows, told)) in counts(&load) {
                assert_eq!(rows, told, "{partition}");
            }
            for partition in load.partitions() {
                load.execute(&format!("ALTER TABLE {}_{partition} DROP CONSTRAINT own", load.name));
            }
            let report = resume(&load);
            assert_eq!(report.status, Status::Ok, "{:?}", report.error);
            check_complete(&load);
        }
    }
}

#[test]
fn a_flow_that_is_cancelled_at_any_moment_is_completed_by_the_next_one() {
    let mut dice = Dice(74);
    let mut partly = 0;
    for server in servers() {
        for round in 0..24 {
            let text = text_of(&mut dice, 3000);
            let load = load(server, &mut dice, &text, round % 2 == 0);
            let flow = load.flow();
            flow.start().unwrap();
            std::thread::sleep(Duration::from_millis(dice.roll(250)));
            flow.cancel("enough");
            let report = flow.join(Duration::from_secs(20)).expect("the flow hangs");
            assert!(matches!(report.status, Status::Ok | Status::Cancelled), "{:?}", report.error);
            load.no_writer_is_left();
            for (partition, (rows, told)) in counts(&load) {
                assert_eq!(rows, told, "{partition}");
            }
            partly += usize::from(load.all_rows() > 0 && report.status == Status::Cancelled);
            let report = resume(&load);
            assert_eq!(report.status, Status::Ok, "{:?}", report.error);
            check_complete(&load);
        }
    }
    assert!(partly > 0, "no flow was cancelled behind its first commit");
}

#[test]
fn sizes_and_epochs_that_do_not_fit_are_refused() {
    let mut dice = Dice(75);
    let server = servers().first().unwrap();
    let text = text_of(&mut dice, 300);
    let (shared, home) = (load(server, &mut dice, &text, true), load(server, &mut dice, &text, false));
    let refused = |load: &Load<'_>, change: &dyn Fn(&mut Value)| {
        let mut spec = load.spec.clone();
        change(&mut spec);
        let error = Flow::new(serde_json::from_value(spec).unwrap()).err().expect("it was accepted");
        assert_eq!(error.kind, ErrorKind::Specification);
    };
    let some_epochs = shared.spec["source"]["epochs"].clone();
    refused(&home, &|spec| spec["source"]["epochs"] = some_epochs.clone());
    refused(&home, &|spec| spec["sink"]["commit"] = json!("together"));
    refused(&shared, &|spec| spec["sink"]["commit"] = json!("together"));
    refused(&shared, &|spec| spec["source"]["epochs"] = json!([[1]]));
    refused(&shared, &|spec| spec["source"]["epochs"].as_array_mut().unwrap().push(json!([1])));
    refused(&shared, &|spec| spec["source"]["epochs"].as_array_mut().unwrap().push(json!([999])));
    refused(&shared, &|spec| {
        spec["source"]["epochs"] = json!([]);
        spec["sink"]["commit_rows"] = json!(5);
    });
}
