//! Patterns that are looked for in text, and text in packed files.

use crate::records::split;
use std::io::{Read, Seek, Write};
use std::path::Path;
use tamis_records::grep::{Matcher, Options, Print, Search, Stretch};
use tamis_records::input::{Entrance, TextReader, text_from};
use tamis_records::key::{KeysOfText, TextKeys};
use tamis_records::line_time::LineTimes;
use tamis_records::needs::needs;
use tamis_records::patterns::{Patterns, Syntax};

/// How a pattern is read, the pattern, and text: a line that matches has the keys that the pattern needs.
pub(crate) fn patterns(data: &[u8]) {
    let Some((how, pattern, text)) = split(data) else {
        return;
    };
    let Ok(pattern) = std::str::from_utf8(pattern) else {
        return;
    };
    let patterns = Patterns {
        texts: vec![pattern.to_owned()],
        syntax: match how.as_bytes().first() {
            Some(b'w') => Syntax::Words,
            Some(b'f') => Syntax::Literal,
            _ => Syntax::Regex,
        },
        ignore_case: how.contains('i'),
        smart_case: how.contains('S'),
        whole_words: how.contains('W'),
        whole_lines: how.contains('x'),
    };
    let needs = [TextKeys::Words, TextKeys::Trigrams].map(|keys| (keys, needs(&patterns, keys)));
    let Ok(matcher) = Matcher::new(&patterns) else {
        return;
    };
    let options = Options {
        print: Print::Count,
        ..Options::default()
    };
    let mut search = Search::new(&matcher, &options);
    for line in text.split(|byte| *byte == b'\n') {
        let stretch = Stretch {
            // A mark at the beginning of a file is no text, and what follows may be UTF-16.
            offset: 1,
            line: 0,
            text: Box::new(line),
        };
        let found = search.file(
            Path::new(""),
            std::iter::once(Ok(stretch)),
            None,
            &mut std::io::sink(),
        );
        if found.is_ok_and(|found| found.matched_lines > 0) {
            for (keys, needs) in &needs {
                let mut of_line = KeysOfText::new(*keys);
                of_line.add(line);
                let own = of_line.take();
                let met = needs[0].is_met(&mut |key| own.contains(&key));
                assert!(met, "a false no");
            }
        }
    }
}

/// Text of a file that is read at once, and what is read of it.
const MOST: u64 = 1 << 20;

/// Two bytes, and a file: from any offset, its text is that of the whole file from there on.
pub(crate) fn packed(data: &[u8]) {
    let Some((offset, bytes)) = data.split_first_chunk() else {
        return;
    };
    let Ok(mut file) = tempfile::tempfile() else {
        return;
    };
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .expect("a file to write to");
    let again = || file.try_clone().expect("an open file");
    let Ok(mut reader) = TextReader::new(again(), &Default::default()) else {
        return;
    };
    let mut text = Vec::new();
    let whole = (&mut reader).take(MOST).read_to_end(&mut text).is_ok();
    let entrances = reader.take_entrances();
    for entrance in &entrances {
        assert_eq!(
            Entrance::from_bytes(&entrance.to_bytes()).as_ref(),
            Some(entrance)
        );
    }
    LineTimes::new(None, tamis::Moment::from_secs(0)).range(&text, &mut None);
    let offset = u64::from(u16::from_le_bytes(*offset)).min(text.len() as u64);
    if !whole {
        return;
    }
    let mut before: Vec<Option<&Entrance>> = entrances
        .iter()
        .filter(|entrance| entrance.text <= offset)
        .map(Some)
        .collect();
    before.push(None);
    for entrance in before {
        let mut rest = Vec::new();
        let read = text_from(again(), reader.kind(), entrance, offset)
            .and_then(|text| text.take(MOST - offset).read_to_end(&mut rest));
        read.expect("what was read once is read again");
        assert_eq!(rest, text[offset as usize..]);
    }
}
