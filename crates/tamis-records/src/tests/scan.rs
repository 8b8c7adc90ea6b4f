//! One read for all specs of an index.

use super::common::Random;
use crate::input::{Input, Packing, TextKind};
use crate::key::{KeySpec, Keys, KeysOfText, Missing, TextKeys};
use crate::line_time::LineTimes;
use crate::progress::Progress;
use crate::reader::{CHUNK, Chunk, Reader};
use crate::records::newlines;
use crate::scan::{Buffers, Remarks, Segment, Task, Text, has_sums, scan};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::Moment;
use tamis::index::{EntryKeys, IndexBuilder, IndexOptions};
use xxhash_rust::xxh3::xxh3_64;

const SPECS: [&str; 11] = [
    "line",
    "word",
    "trigram",
    "csv:2",
    "csv:id,name",
    "csv:missing",
    "tsv:1",
    "jsonl:/id",
    "prefix:3:word",
    "prefix:2:csv:name",
    "parquet:id",
];

fn options(specs: &[&str]) -> IndexOptions {
    let options = IndexOptions::new(0.01).unwrap();
    options.specs(specs.iter().copied()).unwrap()
}

fn index(options: &IndexOptions, keys: EntryKeys) -> Vec<u8> {
    let mut builder = IndexBuilder::in_memory(options);
    builder.add("file", None, &keys.build().unwrap()).unwrap();
    builder.finish().unwrap().to_bytes()
}

/// The index of a file, the remarks, and how many bytes were read.
fn scanned(path: &Path, specs: &[&str]) -> (Vec<u8>, Vec<Remarks>, u64) {
    let options = options(specs);
    let progress = Arc::<Progress>::default();
    let parsed: Vec<KeySpec> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let text = Text::of(path, file, size, &progress).unwrap();
    let task = Task {
        specs: &parsed,
        options: &options,
        progress: &progress,
    };
    let mut builder = IndexBuilder::in_memory(&options);
    let scanned = scan(
        text,
        task,
        &mut times(),
        &mut Buffers::default(),
        |segment| {
            builder.add("file", None, &segment.filters).unwrap();
        },
    );
    let index = builder.finish().unwrap();
    assert_eq!(index.len(), 1);
    (
        index.to_bytes(),
        scanned.unwrap().remarks,
        progress.consumed.load(Relaxed),
    )
}

fn times() -> LineTimes {
    LineTimes::new(None, Moment::from_secs(1_794_700_800))
}

/// A line for each second, and a last one that has no end.
fn a_long_log() -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0..600_000u64 {
        writeln!(
            text,
            "{} request {line:08x} of {}",
            1_794_700_800 + line,
            "x".repeat((line % 40) as usize)
        )
        .unwrap();
    }
    text.extend_from_slice(b"the last line has no end");
    text
}

/// Segments are adjacent, end at line ends, contain what they claim, and have only the keys of their lines.
#[test]
fn segments_are_whole_lines() {
    let text = a_long_log();
    let options = options(&["word"]);
    let specs: [KeySpec; 1] = ["word".parse().unwrap()];
    let progress = Arc::<Progress>::default();
    let task = Task {
        specs: &specs,
        options: &options,
        progress: &progress,
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let opened = || File::open(file.path()).unwrap();
    let all = || Text::of(file.path(), opened(), text.len() as u64, &progress).unwrap();
    let mut segments = Vec::new();
    let scanned = scan(
        all(),
        task,
        &mut times(),
        &mut Buffers::default(),
        |segment| segments.push(segment),
    )
    .unwrap();
    assert_eq!(scanned.whole, text.len() as u64 - 24);
    assert!(segments.len() > 1, "{}", segments.len());
    let (mut start, mut line) = (0, 0u64);
    for segment in &segments {
        let end = start + segment.bytes as usize;
        let part = &text[start..end];
        assert!(end == text.len() || part.ends_with(b"\n"));
        assert_eq!(segment.lines, newlines(part));
        assert_eq!(segment.sum, xxh3_64(part));
        let first = Moment::from_secs(1_794_700_800 + line as i64);
        let last = Moment::from_secs(1_794_700_800 + (line + segment.lines) as i64 - 1);
        assert_eq!(segment.times, Some((first, last)));
        assert_eq!(segment.last_time, Some(last));
        let mut keys = KeysOfText::new(TextKeys::Words);
        keys.add(part);
        assert_eq!(segment.filters.keys(0), keys.take().len() as u64);
        (start, line) = (end, line + segment.lines);
    }
    assert_eq!(start, text.len());
    // A tail scanned alone equals the same part scanned with the rest.
    let at: u64 = segments[0].bytes;
    let tail = Text::from(
        file.path(),
        opened(),
        TextKind::PLAIN,
        at,
        text.len() as u64,
    )
    .unwrap();
    let mut tails = Vec::new();
    scan(
        tail,
        task,
        &mut times(),
        &mut Buffers::default(),
        |segment| tails.push(segment),
    )
    .unwrap();
    let of = |segments: &[Segment]| -> Vec<_> {
        let segments = segments.iter();
        segments
            .map(|one| (one.bytes, one.lines, one.sum, one.filters.clone()))
            .collect()
    };
    assert_eq!(of(&tails), of(&segments[1..]));
    let mut sums: Vec<_> = segments.iter().map(|one| (one.bytes, one.sum)).collect();
    assert!(has_sums(all(), &sums, &progress).unwrap());
    sums[1].1 ^= 1;
    assert!(!has_sums(all(), &sums, &progress).unwrap());
    sums.truncate(1);
    assert!(!has_sums(all(), &sums, &progress).unwrap(), "there is more");
}

/// The same with a separate read for each spec.
fn by_readers(path: &Path, specs: &[&str]) -> (Vec<u8>, Vec<Remarks>) {
    let options = options(specs);
    let mut keys = EntryKeys::new(&options);
    let mut all = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        let spec: KeySpec = spec.parse().unwrap();
        let mut remarks = Remarks::default();
        let mut maker = Keys::new(&spec);
        let mut of_text = spec.text_keys().map(KeysOfText::new);
        let input = Input::open(path, Packing::Recognised, &Arc::default());
        let mut reader = Reader::new(Box::new([input].into_iter()), spec.rule(), CHUNK);
        let (mut chunk, mut record) = (Chunk::default(), 0);
        while remarks.unknown.is_none() && reader.read(&mut chunk) {
            let (framing, records) = (chunk.framing, chunk.records());
            if let Some(of_text) = &mut of_text {
                of_text.add(records);
            }
            framing.for_each(records, |start, end| {
                record += 1;
                let content = framing.content(&records[start..end]);
                let add = |key: &[u8]| keys.add(number, options.key_hasher().hash(key));
                match maker.each(content, &chunk.columns, add) {
                    Ok(()) => {}
                    Err(Missing::Value) => remarks.without_key += 1,
                    Err(Missing::Malformed(what)) => {
                        let why = || format!("record {record}: {what}");
                        remarks.unknown.get_or_insert_with(why);
                    }
                }
            });
        }
        if let Some(mut of_text) = of_text {
            keys.add_all(number, of_text.take());
        }
        for error in reader.into_errors() {
            assert!(error.is_no_column());
            remarks.no_column = Some(error.cause.to_string());
        }
        if let Some(why) = &remarks.unknown {
            remarks.without_key = 0;
            keys.set_unknown(number, why);
        }
        all.push(remarks);
    }
    (index(&options, keys), all)
}

fn shown(remarks: &[Remarks]) -> Vec<String> {
    remarks.iter().map(|one| format!("{one:?}")).collect()
}

#[test]
fn one_reading_finds_what_a_reading_for_each_spec_finds() {
    let mut random = Random(27);
    let rows = |random: &mut Random, rows: usize, quotes: bool| {
        let mut text = b"id,name\n".to_vec();
        for row in 0..rows {
            let name = random.bytes(b"ab cd.-/", 30);
            match random.below(9) {
                0 if quotes => {
                    let name = String::from_utf8(name).unwrap();
                    write!(text, "{row},\"{name}\n\"\"{row}\"\"\"\r\n").unwrap();
                }
                1 => writeln!(text, "{{\"id\": {row}}}").unwrap(),
                2 => writeln!(text, "{row}\t{row}").unwrap(),
                _ => {
                    write!(text, "{row},").unwrap();
                    text.extend_from_slice(&name);
                    text.push(b'\n');
                }
            }
        }
        text
    };
    let mut files = vec![
        Vec::new(),
        b"\n".to_vec(),
        b"id,name".to_vec(),
        b"id,name\n1,a\n2,\"never closed\n3,b".to_vec(),
    ];
    files.push(rows(&mut random, 20_000, false));
    files.push(rows(&mut random, 30_000, true));
    // The last record has no delimiter.
    files.push(rows(&mut random, 20_000, true)[..300_000].to_vec());
    for text in files {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let texts = &SPECS[..10];
        let (bytes, remarks, consumed) = scanned(file.path(), texts);
        let (expected, told) = by_readers(file.path(), texts);
        assert_eq!(shown(&remarks), shown(&told));
        assert!(bytes == expected, "another index");
        assert_eq!(consumed, text.len() as u64, "one reading");
        for spec in texts {
            let (bytes, remarks, _) = scanned(file.path(), &[spec]);
            let (expected, told) = by_readers(file.path(), &[spec]);
            assert_eq!(shown(&remarks), shown(&told), "{spec}");
            assert!(bytes == expected, "{spec}: another index");
        }
    }
}

#[test]
fn what_one_spec_lacks_is_no_matter_to_the_others() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "id,name\n1,\"open\n2,b\n").unwrap();
    let specs = ["csv:id", "csv:other", "line", "jsonl:/id"];
    let (_, remarks, _) = scanned(file.path(), &specs);
    assert!(remarks[0].unknown.is_some(), "a quote is never closed");
    assert!(remarks[1].no_column.is_some());
    assert!(remarks[2].unknown.is_none() && remarks[2].without_key == 0);
    assert!(remarks[3].unknown.is_none() && remarks[3].without_key == 3);
}

/// The columns of all specs come from one read, and equal those found for each spec alone.
#[cfg(feature = "parquet")]
#[test]
fn columns_of_parquet_are_read_together() {
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let schema = "message table { required int64 id; optional binary name (UTF8); }";
    let schema = parse_message_type(schema).unwrap().into();
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer =
        SerializedFileWriter::new(file.reopen().unwrap(), schema, Default::default()).unwrap();
    for group in 0..3 {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let ids: Vec<i64> = (0..2_000).map(|row| group * 2_000 + row).collect();
        let written = column.typed::<Int64Type>().write_batch(&ids, None, None);
        written.unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let levels: Vec<i16> = ids.iter().map(|id| i16::from(id % 3 > 0)).collect();
        let present = ids.iter().filter(|id| *id % 3 > 0);
        let names: Vec<_> = present
            .map(|id| ByteArray::from(format!("name {id}").as_str()))
            .collect();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&names, Some(&levels), None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
    let specs = [
        "parquet:id",
        "parquet:name",
        "parquet:name,id",
        "prefix:6:parquet:name",
        "parquet:id,missing",
    ];
    let (bytes, remarks, _) = scanned(file.path(), &specs);
    assert!(remarks[4].no_column.is_some());
    let keys = |bytes: &[u8]| -> Vec<u64> {
        let index = tamis::index::FileIndex::view(bytes).unwrap();
        index.specs().map(|spec| spec.keys()).collect()
    };
    assert_eq!(keys(&bytes)[..3], [6_000, 4_000, 4_000]);
    for (number, spec) in specs.iter().enumerate() {
        let (alone, _, _) = scanned(file.path(), &[spec]);
        assert_eq!(keys(&alone), keys(&bytes)[number..=number], "{spec}");
    }
    let options = options(&specs[..1]);
    let mut expected = EntryKeys::new(&options);
    for id in 0..6_000 {
        let key = id.to_string();
        expected.add(0, options.key_hasher().hash(key.as_bytes()));
    }
    let (alone, _, _) = scanned(file.path(), &specs[..1]);
    assert!(alone == index(&options, expected));
}
