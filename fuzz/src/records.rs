//! Rules for keys, specs of an index, and records.

use tamis_records::key::{
    Columns, KeyMaker, KeySpec, Keys, KeysOfText, Part, Pointer, RecordRule, Separator,
};
use tamis_records::records::Framing;

/// The first two lines, and what follows.
pub(crate) fn split(data: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let first = std::str::from_utf8(parts.next()?).ok()?;
    Some((first, parts.next()?, parts.next()?))
}

/// The records, which are all of the bytes, and where the key columns are, if they are there.
fn records<'d>(rule: &RecordRule, bytes: &'d [u8]) -> Option<(Vec<&'d [u8]>, Vec<usize>)> {
    let framing = rule.framing();
    let mut records = Vec::new();
    let mut end = 0;
    framing.for_each(bytes, |from, to| {
        assert_eq!(from, end, "records follow each other");
        end = to;
        records.push(framing.content(&bytes[from..to]));
    });
    assert_eq!(end, bytes.len(), "nothing is left");
    let Part::Columns { separator, columns } = &rule.part else {
        return Some((records, Vec::new()));
    };
    let header = records.first().copied().unwrap_or_default();
    let positions = columns.positions(header, *separator).ok()?;
    if columns.header && !records.is_empty() {
        records.remove(0);
    }
    Some((records, positions))
}

/// An index spec, a question and a file: whatever `grep` would print, `which` must have named. So a record that answers
/// a question has all the keys that the question needs, or makes its file a candidate.
pub(crate) fn specs(data: &[u8]) {
    let Some((spec, asked, file)) = split(data) else {
        return;
    };
    let Ok(spec) = spec.parse::<KeySpec>() else {
        return;
    };
    assert_eq!(spec.to_string().parse::<KeySpec>().as_ref(), Ok(&spec));
    let (Ok(query), Some((records, columns))) = (spec.query(asked), records(spec.rule(), file))
    else {
        return;
    };
    let hasher = tamis::Hasher::default();
    let mut keys = Keys::new(&spec);
    let mut of_text = spec.text_keys().map(KeysOfText::new);
    for record in records {
        let mut own = Vec::new();
        let made = keys.each(record, &columns, |key| own.push(hasher.hash(key)));
        if let Some(of_text) = &mut of_text {
            of_text.add(record);
            own = of_text.take();
        }
        if query.matches(&mut keys, record, &columns) {
            assert!(query.can_be_in(record), "a quick look must not miss it");
            let has_all = query.hashes(&hasher).iter().all(|key| own.contains(key));
            assert!(has_all || made.is_err(), "a false no");
        }
    }
}

/// A rule and a file: a record's key is the same each time, and a record without one is its own.
pub(crate) fn keys(data: &[u8]) {
    let Some((how, list, file)) = split(data) else {
        return;
    };
    let list = String::from_utf8_lossy(list);
    let columns = |separator| {
        let columns = Columns::parse(&list, how.contains('h')).ok()?;
        Some(Part::Columns { separator, columns })
    };
    let part = match how.as_bytes().first() {
        Some(b'c') => columns(Separator::COMMA),
        Some(b't') => columns(Separator::Tab),
        Some(b'j') => Pointer::parse_list(&list).ok().map(Part::Json),
        Some(b'z') => Some(Part::Whole(Framing::Delimited(0))),
        _ => Some(Part::Whole(Framing::LINES)),
    };
    let Some(part) = part else { return };
    let mut made = tamis::KeyRule::EXACT;
    if how.contains('u') {
        made = made.url();
    }
    if how.contains('i') {
        made = made.ignore_case();
    }
    let hex = how.contains('x');
    let rule = RecordRule::of(part, hex, made);
    let Some((records, columns)) = records(&rule, file) else {
        return;
    };
    let (mut maker, mut again) = (KeyMaker::new(&rule), KeyMaker::new(&rule));
    for record in records {
        let (key, made) = maker.key(record, &columns);
        let no_key = [b"\xFE", record].concat();
        match made {
            Ok(()) if rule.is_identity() => assert_eq!(key, record),
            Ok(()) => {}
            Err(_) => assert_eq!(key, no_key),
        }
        assert_eq!(again.key(record, &columns).0, key);
        // The key of a key: what was normalised stays as it is.
        let same_again = matches!(rule.part, Part::Whole(_)) && !hex && !rule.made.ignores_case();
        if same_again && made.is_ok() {
            assert_eq!(again.key(key, &columns).0, key);
        }
    }
}
