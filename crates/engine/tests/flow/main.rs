//! Flows from files to sinks: accounts, slices, rejects, changes, back-pressure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apart;
mod back_pressure;
mod beside;
mod changing_files;
mod footers;
mod fronts;
mod gathered;
mod hashes;
mod joined_beside;
mod joined_fronts;
mod joins;
mod long_rows;
mod lookups;
mod made;
mod measured;
mod packed;
mod positions;
mod qualified;
mod queries;
mod rejects;
mod resumed;
mod reunions;
mod routed;
mod several;
mod slicing;
mod sources;
mod support;
mod trees;
mod union;
