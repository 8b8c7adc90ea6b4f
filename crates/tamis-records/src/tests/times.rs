use super::common::{Random, Trickle, inputs, insert};
use crate::batch::{Print, Token};
use crate::exact::ExactSet;
use crate::key::{Columns, KeyMaker, Part, Pointer, RecordRule, Separator, TimeSpec};
use crate::line_time::{LineTimes, TimeFormat};
use crate::pipeline::{Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::records::Framing;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use tamis::{Hash, Hasher, Moment};

fn of(part: Part) -> RecordRule {
    RecordRule::of(part, false, tamis::KeyRule::EXACT)
}

fn json(list: &str) -> RecordRule {
    of(Part::Json(Pointer::parse_list(list).unwrap()))
}

fn table(separator: Separator, list: &str) -> RecordRule {
    let columns = Columns::parse(list, true).unwrap();
    of(Part::Columns { separator, columns })
}

fn timed(rule: RecordRule, spec: &str) -> RecordRule {
    rule.with_time(spec.parse().unwrap(), None).unwrap()
}

/// The key and the time of every record, from the whole engine.
fn read(rule: &RecordRule, contents: &[&str], chunk: usize) -> (Vec<(Hash, Option<Moment>)>, u64) {
    #[derive(Clone, Copy)]
    struct Timed(Hash, Option<Moment>);
    impl Token for Timed {
        fn shard(&self, shards: usize) -> usize {
            self.0.shard(shards)
        }
    }
    let seen = Mutex::new(Vec::new());
    let progress = Progress::default();
    let sources = contents
        .iter()
        .map(|content| Trickle::new(content.as_bytes(), 7));
    let outcome = run(Job {
        reader: Reader::new(inputs(sources.collect()), rule, chunk),
        rule,
        hash: |key: &[u8], time| Timed(Hasher::default().hash(key), time),
        shards: &mut [ExactSet::default()],
        deciding: Deciding::ByShards,
        decide: |set: &mut ExactSet, keys: &[Timed], new: &mut [bool]| {
            let hashes: Vec<_> = keys.iter().map(|key| key.0).collect();
            seen.lock()
                .unwrap()
                .extend(keys.iter().map(|key| (key.0, key.1)));
            insert(set, &hashes, new)
        },
        print: Print::Nothing,
        output: &mut std::io::sink(),
        output_file: None,
        threads: 2,
        progress: &progress,
        checkpoint: None,
    });
    outcome.decided.unwrap();
    assert!(
        outcome.input_errors.is_empty(),
        "{:?}",
        outcome.input_errors
    );
    (
        seen.into_inner().unwrap(),
        progress.without_time.load(Relaxed),
    )
}

fn keyed(key: &str, seconds: Option<i64>) -> (Hash, Option<Moment>) {
    (
        Hasher::default().hash(key.as_bytes()),
        seconds.map(Moment::from_secs),
    )
}

#[test]
fn times_stand_next_to_keys() {
    let csv =
        "id,at,what\na,1970-01-01T00:00:01Z,x\n\"b\",\"1970-01-01 00:00:02\",\"y\n, 3\"\nc,,\nd\n";
    let expected = [
        keyed("a", Some(1)),
        keyed("b", Some(2)),
        keyed("c", None),
        keyed("d", None),
    ];
    for chunk in [1, 40, 1 << 20] {
        for spec in ["csv:at", "csv:2"] {
            let (seen, without) = read(&timed(table(Separator::COMMA, "id"), spec), &[csv], chunk);
            assert_eq!((&seen[..], without), (&expected[..], 2), "{spec}");
        }
    }
    let tsv = "at\tid\n3\ta\n4000000000000\tb\n";
    let (seen, without) = read(
        &timed(table(Separator::Tab, "id"), "tsv:at"),
        &[tsv],
        1 << 20,
    );
    assert_eq!(seen, [keyed("a", Some(3)), keyed("b", Some(4_000_000_000))]);
    assert_eq!(without, 0);
}

#[test]
fn a_time_may_be_the_key_too_and_the_key_of_several() {
    let rule = timed(table(Separator::COMMA, "at"), "csv:at");
    let (seen, _) = read(&rule, &["at\n1\n", "at\n2\n"], 1 << 20);
    assert_eq!(seen, [keyed("1", Some(1)), keyed("2", Some(2))]);
    let with = timed(table(Separator::COMMA, "b,a"), "csv:at");
    let without = table(Separator::COMMA, "b,a");
    let content = ["a,at,b\nx,5,y\n"];
    let (seen, _) = read(&with, &content, 1 << 20);
    assert_eq!(seen[0].1, Some(Moment::from_secs(5)));
    assert_eq!(seen[0].0, read(&without, &content, 1 << 20).0[0].0);
}

#[test]
fn times_of_json_are_strings_or_numbers() {
    let rule = timed(json("/id"), "jsonl:/m/at");
    let mut keys = KeyMaker::new(&rule);
    for (line, seconds) in [
        (r#"{"id":"k","m":{"at":7}}"#, Some(7)),
        (r#"{"m":{"at":"7"},"id":"k"}"#, Some(7)),
        (r#"{"m":{"at":7000000000000e-12},"id":"k"}"#, Some(7)),
        (
            r#"{"m":{"at":"1970-01-01T00:00:07\u005a"},"id":"k"}"#,
            Some(7),
        ),
        (r#"{"m":{"at":1},"m":{"at":7},"id":"k"}"#, Some(7)),
        (r#"{"id":"k","m":{"at":null}}"#, None),
        (r#"{"id":"k","m":{"at":true}}"#, None),
        (r#"{"id":"k","m":{"at":[7]}}"#, None),
        (r#"{"id":"k","m":{"at":""}}"#, None),
        (r#"{"id":"k","m":{}}"#, None),
        (r#"{"id":"k","m":{"at":1e400}}"#, None),
    ] {
        let (key, made) = keys.key(line.as_bytes(), &[]);
        assert_eq!((key, made), (&b"k"[..], Ok(())), "{line}");
        assert_eq!(keys.time(), seconds.map(Moment::from_secs), "{line}");
    }
    // A line with a time but no key, and one that isn't JSON. Nothing remains from the record before.
    for line in [r#"{"m":{"at":7}}"#, "no json"] {
        assert!(keys.key(line.as_bytes(), &[]).1.is_err(), "{line}");
    }
    assert_eq!(keys.time(), None);
}

fn now() -> Moment {
    "2026-11-17T12:00:00Z".parse().unwrap()
}

#[test]
fn values_are_times_as_programs_write_them() {
    let noon = "2000-10-10T20:55:36Z";
    for (format, value, time) in [
        (None, "10/Oct/2000:13:55:36 -0700", noon),
        (None, "[10/Oct/2000:13:55:36 -0700]", noon),
        (None, "Tue, 10 Oct 2000 13:55:36 -0700", noon),
        (None, "Tue, 10 Oct 2000 13:55:36 -0700 (PDT)", noon),
        (None, "10 Oct 2000 20:55:36 GMT", noon),
        (None, "Sun, 1 Oct 2000 20:55:36 UT", "2000-10-01T20:55:36Z"),
        (None, "1 Oct 2000 20:55:36 +0000", "2000-10-01T20:55:36Z"),
        (None, "Tue Oct 10 20:55:36 2000", noon),
        (None, "2000/10/10 20:55:36", noon),
        (None, "Oct 11 22:14:15", "2026-10-11T22:14:15Z"),
        (None, "Dec  1 22:14:15", "2025-12-01T22:14:15Z"),
        (None, "10/Oct/2000", "2000-10-10T00:00:00Z"),
        // Seconds close to the present, though their digits form a date in 1794.
        (None, "1794010203", "2026-11-07T00:10:03Z"),
        (None, "20241301", "1970-08-23T06:35:01Z"),
        (None, "2024", "1970-01-01T00:33:44Z"),
        (Some("%Y%m%d"), "20240501", "2024-05-01T00:00:00Z"),
        (Some("%s"), "20240501", "1970-08-23T06:21:41Z"),
        (Some("%d.%m.%Y"), " 17.11.2026 ", "2026-11-17T00:00:00Z"),
        (Some("%b %e %T"), "Dec  1 22:14:15", "2025-12-01T22:14:15Z"),
    ] {
        let format: Option<TimeFormat> = format.map(|format| format.parse().unwrap());
        let read = LineTimes::new(format.as_ref(), now()).of_value(value.as_bytes());
        let read = read.unwrap().map(|time| time.to_string());
        assert_eq!(read.as_deref(), Some(time), "{value}");
    }
    for (format, value) in [
        // A zone that we don't know doesn't count as UTC.
        (None, "Tue, 10 Oct 2000 13:55:36 EST"),
        (None, "host Oct 11 22:14:15"),
        (None, "Oct 11 22:14:15 host"),
        (None, "17.11.2026"),
        (None, ""),
        (Some("%Y%m%d"), "2024-05-01"),
        (Some("%Y%m%d"), "202405011"),
        (Some("%s"), "-5"),
    ] {
        let format: Option<TimeFormat> = format.map(|format| format.parse().unwrap());
        let read = LineTimes::new(format.as_ref(), now()).of_value(value.as_bytes());
        assert_eq!(read, Ok(None), "{value}");
    }
}

#[test]
fn numbers_that_may_be_dates_are_not_guessed_at() {
    for (value, date, number, format) in [
        (
            "20240501",
            "2024-05-01T00:00:00Z",
            "20,240,501 seconds since 1970, 1970-08-23T06:21:41Z",
            "%Y%m%d",
        ),
        (
            "2024050112",
            "2024-05-01T12:00:00Z",
            "2,024,050,112 seconds since 1970, 2034-02-20",
            "%Y%m%d%H",
        ),
        (
            "202405011230",
            "2024-05-01T12:30:00Z",
            "202,405,011,230 milliseconds since 1970, 1976-05-31",
            "%Y%m%d%H%M",
        ),
        (
            "20240501123045",
            "2024-05-01T12:30:45Z",
            "20,240,501,123,045 milliseconds since 1970, 2611-05-26",
            "%Y%m%d%H%M%S",
        ),
    ] {
        let two = LineTimes::new(None, now())
            .of_value(value.as_bytes())
            .unwrap_err();
        let text = two.to_string();
        assert!(
            text.contains(&format!(
                "'{value}' can be read in two ways: as {date}, or as {number}"
            )),
            "{text}"
        );
        assert_eq!(two.format, format);
        let format: TimeFormat = format.parse().unwrap();
        let read = LineTimes::new(Some(&format), now()).of_value(value.as_bytes());
        assert_eq!(read, Ok(Some(two.date)), "{value}");
    }
}

#[test]
fn lines_have_times_as_logs_do() {
    let columns = Columns::parse("1", false).unwrap();
    let separator = Separator::Blanks;
    let rule = timed(of(Part::Columns { separator, columns }), "line");
    let lines = "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /\"\nnone\n";
    let (seen, without) = read(&rule, &[lines], 1 << 20);
    assert_eq!(
        seen,
        [keyed("10.0.0.1", Some(971_211_336)), keyed("none", None)]
    );
    assert_eq!(without, 1);
    let format = Some("%d.%m.%Y".parse().unwrap());
    let rule = RecordRule::LINE.with_time(TimeSpec::Line, format).unwrap();
    let (seen, _) = read(&rule, &["at 02.01.1970: x\n"], 1 << 20);
    assert_eq!(seen, [keyed("at 02.01.1970: x", Some(86_400))]);
}

#[test]
fn whole_records_have_times_too() {
    let rule = timed(RecordRule::LINE, "jsonl:/at");
    let (seen, without) = read(&rule, &["{\"at\":9}\nnone\n"], 1 << 20);
    assert_eq!(seen, [keyed("{\"at\":9}", Some(9)), keyed("none", None)]);
    assert_eq!(without, 1);
    // A name needs a header row, a number doesn't.
    let (seen, _) = read(
        &timed(RecordRule::LINE, "csv:at"),
        &["at,x\n9,a\n"],
        1 << 20,
    );
    assert_eq!(seen, [keyed("9,a", Some(9))]);
    let (seen, _) = read(
        &timed(RecordRule::LINE, "tsv:1"),
        &["9\ta\n8\tb\n"],
        1 << 20,
    );
    assert_eq!(seen, [keyed("9\ta", Some(9)), keyed("8\tb", Some(8))]);
}

#[test]
fn files_may_have_their_columns_elsewhere() {
    let csv = |content: &str| content.to_owned();
    let rule = timed(table(Separator::COMMA, "id"), "csv:at");
    // Headers must be equal, as for keys.
    let files = [csv("id,at\na,1\n"), csv("id,at\nb,2\n")];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(read(&rule, &files, 1 << 20).0.len(), 2);
    let reader = |content: &str| {
        let mut reader = Reader::new(
            inputs(vec![Trickle::new(content.as_bytes(), 99)]),
            &rule,
            99,
        );
        assert!(!reader.read(&mut Default::default()), "{content}");
        reader.into_errors().pop().unwrap().to_string()
    };
    let error = reader("id,when\na,1\n");
    assert!(error.contains("no column 'at'"), "{error}");
}

#[test]
fn a_time_does_not_change_keys() {
    let mut random = Random(28);
    let plain = json("/a,/b");
    let with = timed(json("/a,/b"), "jsonl:/t");
    let (mut one, mut other) = (KeyMaker::new(&plain), KeyMaker::new(&with));
    let csv_plain = table(Separator::COMMA, "1,2");
    let csv_with = timed(table(Separator::COMMA, "1,2"), "csv:3");
    let (mut csv_one, mut csv_other) = (KeyMaker::new(&csv_plain), KeyMaker::new(&csv_with));
    for _ in 0..20_000 {
        let line = random.bytes(b"{}\"\":,abt1 ", 24);
        let (key, made) = one.key(&line, &[]);
        assert_eq!(other.key(&line, &[]), (key, made));
        let row = random.bytes(b"\",abc 1", 24);
        let (key, made) = csv_one.key(&row, &[0, 1]);
        assert_eq!(csv_other.key(&row, &[0, 1, 2]), (key, made));
    }
}

#[test]
fn what_is_no_time_of_a_record_is_refused() {
    for (spec, why) in [
        ("", "unknown time ''"),
        ("clock", "unknown time 'clock'"),
        ("csv", "unknown time 'csv'"),
        ("csv:", "a column name is empty"),
        ("csv:0", "numbered from 1"),
        ("csv:a,b", "one column, got 2"),
        ("jsonl:at", "starts with '/'"),
        ("jsonl:/a,/b", "one pointer, got 2"),
        ("parquet:at", "unknown time"),
    ] {
        let error = spec.parse::<TimeSpec>().unwrap_err();
        assert!(error.contains(why), "{spec}: {error}");
    }
    let nul = of(Part::Whole(Framing::Delimited(0)));
    for (rule, spec, why) in [
        (
            json("/id"),
            "csv:at",
            "a column of CSV, but the key is in JSON",
        ),
        (
            table(Separator::COMMA, "id"),
            "jsonl:/at",
            "in JSON, but the key is columns of CSV",
        ),
        (
            table(Separator::Tab, "id"),
            "csv:at",
            "a column of CSV, but the key is columns of TSV",
        ),
        (nul, "tsv:at", "ends with another byte"),
        (
            json(&vec!["/a"; 64].join(",")),
            "jsonl:/at",
            "65 JSON pointers",
        ),
    ] {
        let error = rule.with_time(spec.parse().unwrap(), None).unwrap_err();
        assert!(error.contains(why), "{spec}: {error}");
    }
    let no_header = of(Part::Columns {
        separator: Separator::COMMA,
        columns: Columns::parse("1", false).unwrap(),
    });
    let error = no_header
        .with_time("csv:at".parse().unwrap(), None)
        .unwrap_err();
    assert!(error.contains("columns have only numbers"), "{error}");
    assert!(
        !RecordRule::LINE
            .with_time(TimeSpec::Now, None)
            .unwrap()
            .has_time()
    );
}
