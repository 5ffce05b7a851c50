//! The bytes of the tables: golden, independent of chunks, parts and buffers, equal to the library's.

#![allow(clippy::unwrap_used, reason = "also helpers of the tests unwrap")]

use std::fmt::Display;
use std::fmt::Write as _;
use std::io::Read;

use headrace_generate::{TpchChunk, TpchTable, TpchText};
use tpchgen::generators as library;

const SCALE: f64 = 0.01;

fn chunk_text(table: TpchTable, scale: f64, chunk: u32, chunks: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let filled = TpchText::new(table, scale, chunk, chunks).unwrap().fill(&mut out, 1 << 30);
    assert!(filled.ended);
    assert_eq!(filled.rows as usize, out.iter().filter(|byte| **byte == b'\n').count());
    out
}

fn table_text(table: TpchTable) -> Vec<u8> {
    chunk_text(table, SCALE, 1, 1)
}

/// FNV-1a, 64 bits.
fn fingerprint(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn tables_at_scale_one_hundredth_are_golden() {
    let found: Vec<_> = TpchTable::ALL
        .into_iter()
        .map(|table| {
            let text = table_text(table);
            (table.name(), text.len(), fingerprint(&text))
        })
        .collect();
    let golden = [
        ("region", 389, 0x0c40_8881_3f7d_56f8),
        ("nation", 2_224, 0xb150_da8b_f741_231d),
        ("supplier", 13_795, 0xff91_96a7_6fd4_58ac),
        ("customer", 240_990, 0xc458_14a6_18ad_08d1),
        ("part", 237_134, 0x7423_e7df_0811_3e5c),
        ("partsupp", 1_161_705, 0x98c4_3d04_80b4_1dd7),
        ("orders", 1_659_137, 0xab07_be01_05d4_ef57),
        ("lineitem", 7_264_250, 0xc7e3_5b48_5a0b_9dbb),
    ];
    assert_eq!(found, golden);
}

#[test]
fn first_rows_are_golden() {
    for (table, row) in [
        (
            TpchTable::Region,
            "0|AFRICA|lar deposits. blithely final packages cajole. regular waters are final requests. regular accounts are according to |",
        ),
        (TpchTable::Nation, "0|ALGERIA|0| haggle. carefully final deposits detect slyly agai|"),
        (
            TpchTable::Supplier,
            "1|Supplier#000000001| N kD4on9OM Ipw3,gf0JBoQDd7tgrzrddZ|17|27-918-335-1736|5755.94|each slyly above the careful|",
        ),
        (
            TpchTable::Customer,
            "1|Customer#000000001|IVhzIApeRb ot,c,E|15|25-989-741-2988|711.56|BUILDING|to the even, regular platelets. regular, ironic epitaphs nag e|",
        ),
        (
            TpchTable::Part,
            "1|goldenrod lavender spring chocolate lace|Manufacturer#1|Brand#13|PROMO BURNISHED COPPER|7|JUMBO PKG|901.00|ly. slyly ironi|",
        ),
        (
            TpchTable::Partsupp,
            "1|2|3325|771.64|, even theodolites. regular, final theodolites eat after the carefully pending foxes. furiously regular deposits sleep slyly. carefully bold realms above the ironic dependencies haggle careful|",
        ),
        (TpchTable::Orders, "1|370|O|172799.49|1996-01-02|5-LOW|Clerk#000000951|0|nstructions sleep furiously among |"),
        (
            TpchTable::Lineitem,
            "1|1552|93|1|17|24710.35|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON|TRUCK|egular courts above the|",
        ),
    ] {
        let text = table_text(table);
        let first = text.split(|byte| *byte == b'\n').next().unwrap();
        assert_eq!(String::from_utf8_lossy(first), row, "{table}");
    }
}

#[test]
fn chunks_one_after_the_other_are_the_table() {
    for table in TpchTable::ALL {
        let whole = table_text(table);
        for chunks in [1, 3, 8] {
            let joined: Vec<u8> = (1..=chunks).flat_map(|chunk| chunk_text(table, SCALE, chunk, chunks)).collect();
            assert!(joined == whole, "{table} in {chunks} chunks");
        }
    }
}

#[test]
fn parts_one_after_the_other_are_the_chunk() {
    for (scale, chunks) in [(SCALE, 1), (SCALE, 8), (0.013, 7), (0.0123, 3), (0.0001, 13), (0.0007, 100)] {
        for table in TpchTable::ALL {
            for chunk in 1..=chunks {
                let whole = chunk_text(table, scale, chunk, chunks);
                for wanted in [0, 1, 2, 3, 5, 64, 1000] {
                    let parts = TpchChunk::new(table, scale, chunk, chunks).unwrap().sub_parts(wanted);
                    assert!(parts.len() as u64 <= 2 * wanted + 2 || parts.len() == 1, "{} of {wanted}", parts.len());
                    let mut joined = Vec::new();
                    for part in &parts {
                        assert!(TpchText::of_part(part).fill(&mut joined, 1 << 25).ended);
                    }
                    assert!(joined == whole, "{table} at {scale}, chunk {chunk} of {chunks} in {wanted} parts");
                }
            }
        }
    }
}

#[test]
fn parts_are_of_about_equal_size() {
    for (scale, chunk, chunks) in [(1.0, 1, 1), (0.013, 3, 7), (1.0, 8, 8), (300.0, 5, 7)] {
        let chunk = TpchChunk::new(TpchTable::Lineitem, scale, chunk, chunks).unwrap();
        for wanted in [2, 7, 16] {
            let parts = chunk.sub_parts(wanted);
            assert!(parts.len() as u64 + 1 >= wanted, "{} of {wanted}", parts.len());
            let largest = parts.iter().map(|part| part.units()).max().unwrap();
            let even = chunk.whole().units() / wanted;
            assert!(largest <= even + even / 2 + 1, "{largest} units instead of {even}");
        }
    }
}

#[test]
fn keys_drawn_as_64_bits_are_never_cut() {
    let parts = |table, scale| TpchChunk::new(table, scale, 2, 3).unwrap().split(8).len();
    assert_eq!(parts(TpchTable::Lineitem, 30_000.0), 1);
    assert_eq!(parts(TpchTable::Orders, 100_000.0), 1);
    assert!(parts(TpchTable::Partsupp, 30_000.0) > 1);
    assert!(parts(TpchTable::Lineitem, 10_000.0) > 1);
}

#[test]
fn reading_gives_the_same_bytes_for_every_buffer_size() {
    for table in TpchTable::ALL {
        let whole = chunk_text(table, 0.001, 1, 1);
        for size in [1, 7, 511, 512, 4096, 1 << 20] {
            let mut text = TpchText::new(table, 0.001, 1, 1).unwrap();
            let (mut buffer, mut read) = (vec![0; size], Vec::new());
            loop {
                let bytes = text.read(&mut buffer).unwrap();
                if bytes == 0 {
                    break;
                }
                read.extend_from_slice(&buffer[..bytes]);
            }
            assert!(read == whole, "{table} read {size} bytes at a time");
            assert_eq!(text.read(&mut buffer).unwrap(), 0);
            assert_eq!(text.rows_produced() as usize, whole.iter().filter(|byte| **byte == b'\n').count());
        }
        // Buffers of changing size, some of which hold a row and some not.
        let mut text = TpchText::new(table, 0.001, 1, 1).unwrap();
        let (mut read, mut buffer) = (Vec::new(), vec![0; 2000]);
        for size in [3, 1500, 0, 511, 600].into_iter().cycle() {
            let bytes = text.read(&mut buffer[..size]).unwrap();
            if bytes == 0 && size > 0 {
                break;
            }
            read.extend_from_slice(&buffer[..bytes]);
        }
        assert!(read == whole, "{table} read in changing pieces");
    }
}

#[test]
fn filling_appends_whole_rows_up_to_the_wanted_bytes() {
    let whole = table_text(TpchTable::Lineitem);
    let mut text = TpchText::new(TpchTable::Lineitem, SCALE, 1, 1).unwrap();
    let mut out = Vec::new();
    let mut rows = 0;
    loop {
        let before = out.len();
        let filled = text.fill(&mut out, 10_000);
        rows += filled.rows;
        assert_eq!(filled.bytes, out.len() - before);
        assert_eq!(out.last(), Some(&b'\n'));
        if filled.ended {
            break;
        }
        assert!((10_000..10_512).contains(&filled.bytes), "{}", filled.bytes);
    }
    assert!(out == whole);
    assert_eq!(rows, text.rows_produced());
    let after = text.fill(&mut out, 10_000);
    assert!(after.ended && after.rows == 0 && after.bytes == 0);
}

#[test]
fn every_row_is_what_the_library_displays() {
    fn displayed(rows: impl Iterator<Item = impl Display>) -> String {
        rows.fold(String::new(), |mut text, row| {
            writeln!(text, "{row}").unwrap();
            text
        })
    }
    // Scale 0.013: another one than the golden one. The late chunk at a large scale has long keys.
    for (scale, chunk, chunks) in [(0.013, 1, 1), (8000.0, 99_999, 100_000)] {
        let (number, count) = (chunk as i32, chunks as i32);
        for table in TpchTable::ALL {
            let most = 20_000;
            let expected = match table {
                TpchTable::Region if chunk > 1 => String::new(),
                TpchTable::Nation if chunk > 1 => String::new(),
                TpchTable::Region => displayed(library::RegionGenerator::default().iter()),
                TpchTable::Nation => displayed(library::NationGenerator::default().iter()),
                TpchTable::Supplier => {
                    displayed(library::SupplierGenerator::new(scale, number, count).iter().take(most))
                }
                TpchTable::Customer => {
                    displayed(library::CustomerGenerator::new(scale, number, count).iter().take(most))
                }
                TpchTable::Part => displayed(library::PartGenerator::new(scale, number, count).iter().take(most)),
                TpchTable::Partsupp => {
                    displayed(library::PartSuppGenerator::new(scale, number, count).iter().take(most))
                }
                TpchTable::Orders => displayed(library::OrderGenerator::new(scale, number, count).iter().take(most)),
                TpchTable::Lineitem => {
                    displayed(library::LineItemGenerator::new(scale, number, count).iter().take(most))
                }
            };
            let mut found = Vec::new();
            TpchText::new(table, scale, chunk, chunks).unwrap().fill(&mut found, expected.len());
            assert!(found.starts_with(expected.as_bytes()), "{table} at scale {scale}");
            assert!(found.len() >= expected.len());
        }
    }
}
