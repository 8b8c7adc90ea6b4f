//! The kinds of keys of an index: columns of CSV, TSV and Parquet, values of JSON, and prefixes.

use super::*;

#[test]
fn the_examples_of_hbase() {
    let dir = Sandbox::new();
    dir.write("sf1", "row,qualifier,value\nr1,q1,v\nr2,q1,v\n");
    dir.write("sf2", "row,qualifier,value\nr3,q1,v\nr4,q1,v\n");
    dir.ok("index by-row --key csv:row -p 0.0001 sf1 sf2");
    assert_eq!(which(&dir, "r1 by-row"), ["sf1"]);
    assert_eq!(which(&dir, "r4 by-row"), ["sf2"]);
    assert_eq!(dir.run("grep --candidates r9 by-row").code, 1);

    dir.write("sf2", "row,qualifier,value\nr1,q2,v\nr2,q2,v\n");
    dir.ok("index both --key csv:row --key csv:row,qualifier -p 0.0001 sf1 sf2");
    assert_eq!(which(&dir, "--key csv:row r1 both"), ["sf1", "sf2"]);
    assert_eq!(which(&dir, "--key csv:row,qualifier r1,q1 both"), ["sf1"]);
    assert_eq!(which(&dir, "--key csv:row,qualifier r1,q2 both"), ["sf2"]);
    let found = dir.ok("grep -n --key csv:row r1 both");
    assert_eq!(found.text(), "sf1:2:r1,q1,v\nsf2:2:r1,q2,v\n");
    let found = dir.ok("grep -n --key csv:row,qualifier r2,q2 both");
    assert_eq!(found.text(), "sf2:3:r2,q2,v\n");

    // With several key specs, the user has to name one.
    let unsaid = dir.run("grep --candidates r1 both");
    assert_eq!(unsaid.code, 2);
    assert!(unsaid.err.contains("--key") && unsaid.err.contains("csv:row, csv:row,qualifier"));
    let unknown = dir.run("grep --candidates --key word r1 both");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("csv:row,qualifier"), "{}", unknown.err);
}

#[test]
fn every_format_has_its_keys() {
    let dir = Sandbox::new();
    dir.write(
        "t.csv",
        "id,name\n7,\"Smith, \"\"Bob\"\"\"\n8,\"two\nlines\"\n9,end\n",
    );
    dir.write("t.tsv", "id\tname\n7\tSmith, \"Bob\"\n");
    dir.write(
        "t.jsonl",
        "{\"id\":7,\"user\":{\"name\":\"Sm\\u0069th\"}}\n{\"id\":\"8\"}\nnot json\n",
    );
    let ask = |spec: &str, key: &str| {
        let mut command = dir.command("grep -n -k");
        let ran = command.args([spec, key, "ix"]).output().unwrap();
        (
            ran.status.code().unwrap(),
            String::from_utf8(ran.stdout).unwrap(),
        )
    };
    let made = dir.ok(
        "index ix -p 1e-6 --key csv:name --key csv:id --key tsv:2 --key jsonl:/id \
         --key jsonl:/id,/user/name --key prefix:3:csv:name --key csv:1 t.csv t.tsv t.jsonl",
    );
    // The columns aren't in every file, which is reported but isn't an error.
    assert!(
        made.err
            .contains("2 files without a key csv:name, for example t.jsonl: no column"),
        "{}",
        made.err
    );
    assert!(made.err.contains("without a key jsonl:/id"), "{}", made.err);
    let row = "t.csv:2:7,\"Smith, \"\"Bob\"\"\"\n";
    assert_eq!(ask("csv:name", "Smith, \"Bob\""), (0, row.into()));
    assert_eq!(ask("csv:id", "9"), (0, "t.csv:5:9,end\n".into()));
    assert_eq!(ask("csv:id", "id"), (1, String::new()));
    assert_eq!(ask("csv:1", "id"), (0, "t.csv:1:id,name\n".into()));
    assert_eq!(
        ask("tsv:2", "Smith, \"Bob\""),
        (0, "t.tsv:2:7\tSmith, \"Bob\"\n".into())
    );
    assert_eq!(
        ask("jsonl:/id", "8"),
        (0, "t.jsonl:2:{\"id\":\"8\"}\n".into())
    );
    assert_eq!(ask("jsonl:/id,/user/name", "7,Smith").0, 0);
    assert_eq!(ask("jsonl:/id,/user/name", "8,Smith"), (1, String::new()));
    assert_eq!(ask("prefix:3:csv:name", "Smi"), (0, row.into()));
    assert_eq!(ask("prefix:3:csv:name", "Smith, "), (0, row.into()));
    assert_eq!(ask("prefix:3:csv:name", "Smithy"), (1, String::new()));
    assert_eq!(ask("prefix:3:csv:name", "Sm").0, 2);
    let two = dir.ok("grep -n --key csv:name --json end ix");
    assert_eq!(
        two.text(),
        "{\"file\":\"t.csv\",\"key\":\"end\",\"line\":5,\"text\":\"9,end\"}\n"
    );
}

/// A query must find any value as it was indexed.
#[test]
fn values_written_in_odd_ways_are_found() {
    let dir = Sandbox::new();
    dir.write(
        "odd.csv",
        "\u{FEFF}first,b\n\"ab\"cd,\"q\"\"q\"\r\nx,\"un\nclosed",
    );
    dir.write(
        "odd.jsonl",
        "\u{FEFF}{\"id\":\"a\\/b\"}\r\n{ \"id\" : \"c\" , \"id\":1e3}",
    );
    dir.ok("index ix -p 1e-6 --key csv:1 --key csv:2 --key csv:first --key jsonl:/id odd.csv odd.jsonl");
    for (spec, key, line) in [
        ("csv:1", "first", "odd.csv:1:"),
        ("csv:1", "abcd", "odd.csv:2:"),
        ("csv:first", "abcd", "odd.csv:2:"),
        ("csv:2", "q\"q", "odd.csv:2:"),
        ("csv:2", "un\nclosed", "odd.csv:3:"),
        ("jsonl:/id", "a/b", "odd.jsonl:1:"),
        ("jsonl:/id", "1e3", "odd.jsonl:2:"),
    ] {
        let ran = dir
            .command("grep -n -k")
            .args([spec, key, "ix"])
            .output()
            .unwrap();
        let found = String::from_utf8(ran.stdout).unwrap();
        assert!(found.starts_with(line), "{spec} {key}: {found}");
    }
}

#[test]
fn several_keys_are_told_apart() {
    let dir = Sandbox::new();
    dir.write("a", "one two\n");
    dir.write("b", "two three\n");
    dir.ok("index ix -p 1e-6 a b");
    assert_eq!(
        dir.ok("grep --candidates -e one -e two ix").text(),
        "one\ta\ntwo\ta\ntwo\tb\n"
    );
    assert_eq!(
        dir.feed("grep --candidates -f - ix", "three\r\nfour\n")
            .text(),
        "three\tb\n"
    );
    assert_eq!(
        dir.ok("grep --candidates -l -e one -e two ix").text(),
        "a\nb\n"
    );
    assert_eq!(dir.ok("grep --candidates -0 two ix").out, b"a\0b\0");
    assert_eq!(
        dir.ok("grep -n -e one -e three ix").text(),
        "a:1:one two\nb:1:two three\n"
    );
    assert_eq!(dir.ok("grep -l two ix").text(), "a\nb\n");
    assert_eq!(dir.run("grep -n onet ix").code, 1);
    assert_eq!(dir.run("grep --candidates ix").code, 2);
}

/// Two row groups, a column with nulls.
#[cfg(feature = "parquet")]
#[test]
fn parquet_rows_are_found() {
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let dir = Sandbox::new();
    let table = |name: &str, groups: &[[(i64, Option<&str>); 3]]| {
        let schema = "message table { required int64 id; optional binary name (UTF8); }";
        let schema = parse_message_type(schema).unwrap().into();
        let file = fs::File::create(dir.path(name)).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
        for rows in groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let ids = rows.map(|(id, _)| id);
            column
                .typed::<Int64Type>()
                .write_batch(&ids, None, None)
                .unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let names: Vec<_> = rows
                .iter()
                .filter_map(|(_, name)| name.map(ByteArray::from))
                .collect();
            let levels = rows.map(|(_, name)| i16::from(name.is_some()));
            column
                .typed::<ByteArrayType>()
                .write_batch(&names, Some(&levels), None)
                .unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
    };
    table(
        "a",
        &[
            [(1, Some("x")), (2, None), (3, Some("y"))],
            [(4, None), (5, Some("x")), (6, None)],
        ],
    );
    table("b", &[[(-7, Some("z,1")), (8, Some("")), (9, None)]]);
    dir.write("c", "id,name\n1,x\n");
    let made = dir.ok(
        "index ix -p 1e-6 --key parquet:id --key parquet:name --key parquet:id,name --key word a b c",
    );
    assert!(made.err.contains("c: not a Parquet file"), "{}", made.err);
    assert!(
        made.err
            .contains("2 files that may hold any key word, for example a: a Parquet file"),
        "{}",
        made.err
    );
    let ask = |spec: &str, key: &str| {
        let mut command = dir.command("grep -n -k");
        let ran = command.args([spec, "--", key, "ix"]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(ask("parquet:id", "5"), "a:5:5\n");
    assert_eq!(ask("parquet:id", "-7"), "b:1:-7\n");
    assert_eq!(ask("parquet:name", "x"), "a:1:x\na:5:x\n");
    assert_eq!(ask("parquet:name", ""), "b:2:\n");
    assert_eq!(ask("parquet:id,name", "5,x"), "a:5:5,x\n");
    assert_eq!(ask("parquet:id,name", "-7,\"z,1\""), "b:1:-7,\"z,1\"\n");
    assert_eq!(ask("parquet:id,name", "2,"), "");
    assert_eq!(which(&dir, "--key parquet:name z,1 ix"), ["b"]);
    // Its bytes aren't words, but its columns are known.
    assert_eq!(which(&dir, "--key word nowhere ix"), ["a", "b"]);
    assert_eq!(dir.run("grep --candidates --key parquet:id 77 ix").code, 1);
    assert!(dir.ok("index ix").err.contains("up to date"));
    // Inside gzip its columns aren't known.
    dir.write("b", gzip(&dir.read("a")));
    dir.ok("index ix");
    assert_eq!(which(&dir, "--key parquet:id 77 ix"), ["b"]);
}
