//! Target `inflate`: compressed files, whole and damaged, cut into slices and loaded: the whole text, the front of it where the file
//! ends between two pieces, or an error.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use flate2::Compression as Level;
use headrace_engine::Flow;
use headrace_engine::report::Status;
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{Compression, FlowSpec, MemorySpec, RejectSpec, SourceSpec};
use headrace_types::{Column, ColumnType, ErrorKind, Layout};

use crate::input::Input;

const PATIENCE: Duration = Duration::from_secs(60);
const MOST_PIECES: usize = 40;

/// Loads one file.
///
/// # Panics
/// When rows are lost or invented, or the flow hangs.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.below(4);
    let slices = 1 + input.below(6) as u64;
    let streams = 1 + input.below(3);
    let qualifier = input.flag().then_some('"');
    let (mut file, mut text, mut fronts) = (Vec::new(), Vec::new(), vec![0]);
    for _ in 0..MOST_PIECES {
        if input.is_used_up() {
            break;
        }
        let piece: Vec<u8> = match input.below(5) {
            0 => b"abc,\"d\n\"\n".repeat(1 + input.below(200) * 50),
            1 => b"row\n".repeat(input.below(256)),
            2 => vec![b'x'; input.word().into()],
            3 => Vec::new(),
            _ => input.run().to_vec(),
        };
        match kind {
            0 => file.extend(gzip(&piece)),
            1 => piece.chunks(60_000).for_each(|piece| file.extend(bgzf(piece))),
            2 => file.extend(zstd(&piece, true)),
            _ => file.extend(zstd(&piece, false)),
        }
        if kind > 1 && input.below(8) == 0 {
            file.extend([0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        text.extend(piece);
        fronts.push(text.len() as u64);
        if kind == 1 {
            // Several blocks: each may be the last.
            fronts.extend((fronts[fronts.len() - 2]..text.len() as u64).step_by(60_000));
        }
    }
    let is_changed = input.flag();
    if is_changed {
        change(&mut file, &mut input);
    }
    let Some((slicing, limit)) = plan(&file, slices, qualifier) else {
        assert!(is_changed || file.is_empty() || is_no_text(&text), "a whole file cannot be planned");
        return;
    };
    let report = run(slicing, limit, streams);
    let length: u64 = report.slices.iter().map(|slice| slice.bytes).sum();
    match report.error {
        None => {
            let all = text.len() as u64 - if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
            assert!(is_changed && fronts.iter().any(|front| length.abs_diff(*front) <= 3) || length == all);
            let lines: u64 = report.slices.iter().map(|slice| slice.lines).sum();
            assert!(is_changed || qualifier.is_some() || lines == lines_of(&text));
        }
        Some(error) => {
            assert!(is_changed, "{error}");
            assert_eq!((report.status, error.kind), (Status::Failed, ErrorKind::Source), "{error}");
        }
    }
}

fn lines_of(text: &[u8]) -> u64 {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    text.split_inclusive(|byte| *byte == b'\n').count() as u64
}

fn change(file: &mut Vec<u8>, input: &mut Input<'_>) {
    let at = usize::from(input.word()) % (file.len() + 1);
    match input.below(4) {
        0 => file.truncate(at),
        1 => drop(file.splice(at..at, input.run().to_vec())),
        2 => file.extend(vec![0; input.word().into()]),
        _ => {
            if let Some(byte) = file.get_mut(at) {
                *byte ^= 1 << input.below(8);
            }
        }
    }
}

fn layout(qualifier: Option<char>) -> Layout {
    let columns = vec![Column::new("a", ColumnType::String, true)];
    Layout { delimiter: ",".to_owned(), qualifier, columns, ..Layout::default() }
}

/// Whether it begins like a file of another kind, which is refused inside of a compressed one as well.
fn is_no_text(text: &[u8]) -> bool {
    let spec = SlicingSpec {
        files: vec![write(text)],
        slice_bytes: 1 << 20,
        layout: layout(None),
        compression: Compression::Auto,
        ..SlicingSpec::default()
    };
    plan_slices(&spec).map_or(true, |slicing| slicing.files[0].compression != Compression::None)
}

fn plan(file: &[u8], slices: u64, qualifier: Option<char>) -> Option<(SourceSpec, Layout)> {
    let layout = layout(qualifier);
    let spec = SlicingSpec {
        files: vec![write(file)],
        slice_bytes: (file.len() as u64 / slices).max(1),
        layout: layout.clone(),
        compression: Compression::Auto,
        ..SlicingSpec::default()
    };
    let slicing = plan_slices(&spec).ok()?;
    // Changed so that it is no compressed file any more.
    if slicing.files[0].compression == Compression::None {
        return None;
    }
    Some((SourceSpec::of_files(&slicing.files, &slicing.slices), layout))
}

fn run(source: SourceSpec, layout: Layout, streams: usize) -> headrace_engine::report::FlowReport {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemorySpec { block_bytes: 4096, blocks: 8, max_row_bytes: 1 << 20 };
    let flow = Flow::new(FlowSpec {
        rejects: RejectSpec {
            folder: folder.path().to_str().unwrap().to_owned(),
            file_stem: "rejected".to_owned(),
            ..RejectSpec::default()
        },
        ..FlowSpec::plain("inflate", layout, source, streams, memory)
    })
    .unwrap();
    flow.start().unwrap();
    flow.join(PATIENCE).expect("the flow hangs")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), Level::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

fn bgzf(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), Level::fast());
    writer.write_all(text).unwrap();
    let body = writer.finish().unwrap();
    let mut bytes = vec![0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255, 6, 0, b'B', b'C', 2, 0];
    bytes.extend(((18 + body.len() + 8 - 1) as u16).to_le_bytes());
    bytes.extend(body);
    bytes.extend(crc32fast::hash(text).to_le_bytes());
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes
}

fn zstd(text: &[u8], says_length: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    context.set_parameter(zstd_safe::CParameter::ContentSizeFlag(says_length)).unwrap();
    let mut bytes = vec![0; zstd_safe::compress_bound(text.len())];
    let length = context.compress2(&mut bytes[..], text).unwrap();
    bytes.truncate(length);
    bytes
}

/// A file of this content; one per thread, written over and over.
fn write(content: &[u8]) -> String {
    thread_local! {
        static FILE: (File, tempfile::TempPath) = tempfile::NamedTempFile::new().unwrap().into_parts();
    }
    FILE.with(|(file, path)| {
        file.set_len(0).unwrap();
        file.write_all_at(content, 0).unwrap();
        path.to_str().unwrap().to_owned()
    })
}
