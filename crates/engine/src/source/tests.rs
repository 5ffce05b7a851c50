//! Decoders and pieces, on whole files, at any sizes of blocks.

use std::io::Write as _;

use flate2::{Compression as Level, GzBuilder};
use headrace_types::{CoreError, ErrorKind};
use proptest::prelude::*;

use super::*;
use crate::spec::TextRange;

/// Bytes that come in pieces of `step`.
struct Bytes {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl ByteSource for Bytes {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        let count = into.len().min(self.step).min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.at as u64
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), Level::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

/// Every optional part of a header.
fn gzip_with_everything(text: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().filename("a name").comment("a comment").extra(vec![7; 300]).mtime(1);
    let mut writer = builder.write(Vec::new(), Level::best());
    writer.write_all(text).unwrap();
    let mut bytes = writer.finish().unwrap();
    // The header gets its own checksum.
    let length = 12 + 300 + "a name\0".len() + "a comment\0".len();
    bytes[3] |= 1 << 1;
    let checksum = crc32fast::hash(&bytes[..length]) as u16;
    bytes.splice(length..length, checksum.to_le_bytes());
    bytes
}

fn zstd(text: &[u8], with_checksum: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(with_checksum)).unwrap();
    let mut bytes = vec![0; zstd_safe::compress_bound(text.len())];
    let length = context.compress2(&mut bytes[..], text).unwrap();
    bytes.truncate(length);
    bytes
}

fn skipped(bytes: &[u8]) -> Vec<u8> {
    [&0x184D_2A53_u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn decoding(bytes: &[u8], compression: Compression, step: usize) -> Decoding {
    let raw = Box::new(Bytes { bytes: bytes.to_vec(), at: 0, step });
    let decoder_bytes = decoder_bytes(compression, Some(1 << 20));
    let compressed = Compressed { path: "file".to_owned(), compression, decoder_bytes };
    Decoding::new(raw, compressed, TextRange::default(), 0).unwrap()
}

/// All of a source, read in pieces of `step`.
fn all(source: &mut dyn ByteSource, step: usize) -> Result<Vec<u8>, CoreError> {
    let (mut text, mut window) = (Vec::new(), vec![0; step]);
    loop {
        match source.read(&mut window)? {
            0 => return Ok(text),
            count => text.extend_from_slice(&window[..count]),
        }
    }
}

fn decoded(bytes: &[u8], compression: Compression) -> Result<Vec<u8>, String> {
    let found = all(&mut decoding(bytes, compression, 1000), 777);
    let ahead = all(&mut Ahead::start(Box::new(decoding(bytes, compression, 3)), Abandoned::default()).unwrap(), 100);
    // How much text stands before damage depends on the steps.
    let told = |found: &Result<Vec<u8>, CoreError>| found.clone().map_err(|error| error.what);
    assert_eq!(told(&found), told(&ahead), "in a thread of its own");
    found.map_err(|error| {
        assert_eq!((error.kind, error.at.as_ref().unwrap().file.as_str()), (ErrorKind::Source, "file"));
        format!("{}; {}", error.what, error.found.unwrap())
    })
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| b"0123456789|\n"[(at * at / 7) % 12]).collect()
}

#[test]
fn members_frames_and_what_may_stand_between_them_are_one_text() {
    let (one, two) = (text(100_000), text(7));
    let both = [one.as_slice(), &two].concat();
    for bytes in [
        [gzip(&one), gzip(&two)].concat(),
        [gzip(b""), gzip_with_everything(&one), gzip(b""), gzip_with_everything(&two), gzip(b"")].concat(),
        [gzip(&one), gzip(&two), vec![0; 300_000]].concat(),
    ] {
        assert_eq!(decoded(&bytes, Compression::Gzip).as_ref(), Ok(&both));
    }
    for bytes in [
        [zstd(&one, true), zstd(&two, false)].concat(),
        [skipped(b""), zstd(b"", true), zstd(&one, false), skipped(&[9; 200_000]), zstd(&two, true), skipped(b"x")]
            .concat(),
    ] {
        assert_eq!(decoded(&bytes, Compression::Zstd).as_ref(), Ok(&both));
    }
    assert_eq!(decoded(&gzip(b""), Compression::Gzip), Ok(vec![]));
    assert_eq!(decoded(&zstd(b"", true), Compression::Zstd), Ok(vec![]));
    assert_eq!(decoded(&skipped(b"nothing"), Compression::Zstd), Ok(vec![]));
}

#[test]
fn damage_is_told_with_the_place_in_the_text() {
    let one = text(100_000);
    let change = |mut bytes: Vec<u8>, from_end: usize| {
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        bytes
    };
    let cases = [
        (change(gzip(&one), 5), Compression::Gzip, "damaged; text with checksum"),
        (change(gzip(&one), 1), Compression::Gzip, "damaged; 100000 bytes of text in a member, behind 100000"),
        ([gzip(&one), b"x".to_vec()].concat(), Compression::Gzip, "damaged; other bytes behind the end"),
        ([gzip(&one), vec![0; 9], gzip(&one)].concat(), Compression::Gzip, "damaged; other bytes behind the end"),
        (change(gzip_with_everything(b""), 300), Compression::Gzip, "damaged; a header with a wrong checksum"),
        (b"\x1F\x8B\x07\0".to_vec(), Compression::Gzip, "damaged; compression method 7"),
        (b"\x1F\x8B\x08\xFF".to_vec(), Compression::Gzip, "damaged; flags that mean nothing"),
        (b"text".to_vec(), Compression::Gzip, "damaged; bytes that are no gzip, behind 0"),
        (change(zstd(&one, true), 1), Compression::Zstd, "damaged; bytes that are no text"),
        ([zstd(&one, true), b"text".to_vec()].concat(), Compression::Zstd, "damaged; other bytes behind the end"),
        (b"text".to_vec(), Compression::Zstd, "damaged; bytes that are no zstd"),
    ];
    for (bytes, compression, found) in cases {
        let error = decoded(&bytes, compression).unwrap_err();
        assert!(error.contains(found), "{error} instead of {found}");
    }
}

#[test]
fn every_cut_is_noticed() {
    let one = text(3000);
    for (bytes, compression) in [
        ([gzip_with_everything(b"abc"), gzip(&one)].concat(), Compression::Gzip),
        ([skipped(b"1234"), zstd(b"abc", true), zstd(&one, true)].concat(), Compression::Zstd),
    ] {
        // Behind the first member or frame, and behind what is skipped, a file may end.
        let whole = match compression {
            Compression::Gzip => vec![gzip_with_everything(b"abc").len()],
            _ => vec![12, 12 + zstd(b"abc", true).len()],
        };
        for length in 0..bytes.len() {
            let found = all(&mut decoding(&bytes[..length], compression, 1000), 777);
            assert_eq!(found.is_ok(), whole.contains(&length), "{compression} {length}");
            assert!(found.is_ok() || found.unwrap_err().what.ends_with("is cut off"));
        }
    }
}

#[test]
fn a_window_or_a_dictionary_that_was_not_planned_is_refused() {
    // Magic number, no checksum; 4 MB of window, then an empty last block.
    let frame = |descriptor: u8, rest: &[u8]| [&[0x28, 0xB5, 0x2F, 0xFD, descriptor], rest, &[1, 0, 0]].concat();
    let error = decoded(&frame(0, &[12 << 3]), Compression::Zstd).unwrap_err();
    assert!(error.contains("a frame with a window of 4194304 bytes"), "{error}");
    let error = decoded(&frame(1, &[0, 7]), Compression::Zstd).unwrap_err();
    assert!(error.contains("a frame that needs dictionary 7"), "{error}");
    assert_eq!(decoded(&frame(0, &[0]), Compression::Zstd), Ok(vec![]));
    let error = decoded(&frame(0b1000, &[0]), Compression::Zstd).unwrap_err();
    assert!(error.contains("reserved bit"), "{error}");
}

#[test]
fn the_length_of_a_member_is_kept_modulo_four_gigabytes() {
    // 4 GB and a little of zeros: a stored length of the little. The same deflated MB again and again.
    const EXTRA: usize = 12_345;
    const MEGABYTES: usize = 4096;
    let zeros = vec![0; 1 << 20];
    let deflated = |text: &[u8], flush| {
        let mut bytes = Vec::with_capacity(1 << 16);
        flate2::Compress::new(Level::fast(), false).compress_vec(text, &mut bytes, flush).unwrap();
        bytes
    };
    let mut bytes = gzip(b"")[..10].to_vec();
    bytes.extend(deflated(&zeros, flate2::FlushCompress::Full).repeat(MEGABYTES));
    bytes.extend(deflated(&zeros[..EXTRA], flate2::FlushCompress::Finish));
    let mut checksum = crc32fast::Hasher::new();
    (0..MEGABYTES).for_each(|_| checksum.update(&zeros));
    checksum.update(&zeros[..EXTRA]);
    bytes.extend(checksum.finalize().to_le_bytes());
    bytes.extend((EXTRA as u32).to_le_bytes());
    let mut source = decoding(&bytes, Compression::Gzip, 1 << 20);
    let (mut window, mut length) = (vec![1; 1 << 20], 0);
    loop {
        match source.read(&mut window).unwrap() {
            0 => break,
            count => length += count as u64,
        }
    }
    assert_eq!(length, (1 << 32) + EXTRA as u64);
}

#[test]
fn a_source_that_nobody_reads_to_its_end_leaves_no_thread() {
    let bytes = gzip(&text(10_000_000));
    for read in [0, 1, 3] {
        let mut ahead =
            Ahead::start(Box::new(decoding(&bytes, Compression::Gzip, 4096)), Abandoned::default()).unwrap();
        let mut window = vec![0; 100_000];
        for _ in 0..read {
            assert!(ahead.read(&mut window).unwrap() > 0);
        }
        drop(ahead); // joins
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the pieces: the same text, or, of changed bytes, the text or an error, and never a panic.
    #[test]
    fn any_steps_give_the_same_text(
        parts in prop::collection::vec(0_usize..5000, 1..5),
        steps in (1_usize..3000, 1_usize..3000),
        is_gzip: bool,
        change in prop::option::of((0_usize..100_000, 1_u8..=255)),
        cut in prop::option::of(0_usize..100_000),
    ) {
        let texts: Vec<Vec<u8>> = parts.iter().map(|length| text(*length)).collect();
        let compression = if is_gzip { Compression::Gzip } else { Compression::Zstd };
        let mut bytes: Vec<u8> =
            texts.iter().flat_map(|text| if is_gzip { gzip(text) } else { zstd(text, text.len() % 2 == 0) }).collect();
        let is_whole = change.is_none() && cut.is_none();
        if let Some((at, change)) = change {
            let at = at % bytes.len();
            bytes[at] ^= change;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % (bytes.len() + 1));
        }
        let found = all(&mut decoding(&bytes, compression, steps.0), steps.1);
        if is_whole {
            prop_assert_eq!(found, Ok(texts.concat()));
        }
    }
}
