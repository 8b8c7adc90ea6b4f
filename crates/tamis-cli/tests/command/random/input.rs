//! Records of many shapes, whose keys are known.

use super::Random;
use super::packed::pack_somehow;
use crate::common::Sandbox;

#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) key: String,
    /// As printed, with its delimiter.
    pub(crate) text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Lines,
    MixedEnds,
    Nul,
    Csv,
    CsvWithoutHeader,
    Tsv,
    Jsonl,
    Urls,
    AnyCase,
}

pub(crate) struct Input {
    shape: Shape,
    records: Vec<Record>,
}

impl Input {
    pub(crate) fn draw(random: &mut Random) -> Self {
        use Shape::*;
        let shape = random.pick(&[
            Lines,
            Lines,
            MixedEnds,
            Nul,
            Csv,
            Csv,
            CsvWithoutHeader,
            Tsv,
            Jsonl,
            Urls,
            AnyCase,
        ]);
        let count = random.pick(&[1, 2, 30, 300, 3000, 10_000]);
        let count = 1 + random.below(count);
        let spread = random.pick(&[1, 1, 3]);
        let different = 1 + random.below(count * spread);
        // Short records and records a thousand times as long, side by side.
        let longest = random.pick(&[1, 30, 1000]);
        let records = (0..count)
            .map(|_| {
                let id = random.below(different);
                let length = match id % 7 {
                    0 => longest.min(1_000_000 / count),
                    other => other,
                };
                shape.record(id, length as usize, random)
            })
            .collect();
        Self { shape, records }
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> + Clone {
        self.records.iter()
    }

    /// The number of distinct keys, at most.
    pub(crate) fn keys(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn options(&self) -> &'static str {
        match self.shape {
            Shape::Lines | Shape::MixedEnds => "",
            Shape::Nul => " -z",
            Shape::Csv => " -k csv:id",
            Shape::CsvWithoutHeader => " -k csv:2 --no-header",
            Shape::Tsv => " -k tsv:id",
            Shape::Jsonl => " -k jsonl:/id",
            Shape::Urls => " --url",
            Shape::AnyCase => " -i",
        }
    }

    /// The key rule that a filter needs.
    pub(crate) fn rule(&self) -> &'static str {
        match self.shape {
            Shape::Urls => " --url",
            Shape::AnyCase => " -i",
            _ => "",
        }
    }

    pub(crate) fn header(&self) -> Option<&'static [u8]> {
        match self.shape {
            Shape::Csv => Some(b"n,id,more\n"),
            Shape::Tsv => Some(b"n\tid\tmore\n"),
            _ => None,
        }
    }

    pub(crate) fn delimiter(&self) -> u8 {
        match self.shape {
            Shape::Nul => 0,
            _ => b'\n',
        }
    }

    /// A file of these records.
    pub(crate) fn text<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Vec<u8> {
        let mut text = self.header().unwrap_or_default().to_vec();
        records.for_each(|record| text.extend_from_slice(&record.text));
        text
    }

    /// The same, maybe without the last delimiter, and maybe compressed.
    fn file(&self, records: &[Record], random: &mut Random) -> Vec<u8> {
        let mut text = self.text(records.iter());
        let last_is_long = records.last().is_some_and(|record| record.text.len() > 2);
        if last_is_long && random.below(3) == 0 {
            text.pop();
        }
        pack_somehow(random, &text)
    }

    /// Writes all records to standard input or files; returns the arguments, and the standard input.
    pub(crate) fn write(&self, dir: &Sandbox, random: &mut Random) -> (String, Vec<u8>) {
        match random.below(3) {
            0 => (String::new(), self.file(&self.records, random)),
            _ => (self.write_files(dir, &self.records, random), Vec::new()),
        }
    }

    /// Writes these records to one or more files; returns the arguments that name them.
    pub(crate) fn write_files(
        &self,
        dir: &Sandbox,
        records: &[Record],
        random: &mut Random,
    ) -> String {
        std::fs::create_dir(dir.path("in")).unwrap();
        let mut rest = records;
        let mut names = Vec::new();
        for number in 0..=random.below(5) {
            let cut = random.below(rest.len() as u64 + 1) as usize;
            let (part, after) = rest.split_at(cut);
            names.push(format!("in/{number}"));
            dir.write(&names[number as usize], self.file(part, random));
            rest = after;
        }
        names.push("in/last".to_owned());
        dir.write("in/last", self.file(rest, random));
        match random.below(3) {
            0 => "in".to_owned(),
            1 => {
                dir.write("list", names.join("\n"));
                "--files-from list".to_owned()
            }
            _ => names.join(" "),
        }
    }

    /// The first half of the records and the second.
    pub(crate) fn halves(&self) -> (&[Record], &[Record]) {
        self.records.split_at(self.records.len() / 2)
    }
}

impl Shape {
    fn record(self, id: u64, length: usize, random: &mut Random) -> Record {
        let padding = "x".repeat(length);
        let more = random.below(1000);
        let text = match self {
            // One line is empty.
            Self::Lines if id == 0 => "\n".to_owned(),
            Self::Lines => format!("{id}{padding}\n"),
            Self::MixedEnds => format!("{id}{padding}{}", random.pick(&["\n", "\r\n"])),
            Self::Nul => format!("{id}\n{padding}\0"),
            Self::Csv | Self::CsvWithoutHeader => {
                let id = match id % 4 {
                    0 => format!("{id}{padding}"),
                    1 => format!("\"{id}{padding}\""),
                    2 => format!("\"{id},\"\"{padding}\"\"\""),
                    _ => format!("\"{id}\n{padding}\n\""),
                };
                format!("{more},{id},{}\n", random.pick(&["", "y", "\"a,\nb\""]))
            }
            Self::Tsv => format!("{more}\t{id}{padding}\t\"\n"),
            Self::Jsonl => format!("{{\"n\": {more}, \"id\": \"{id}{padding}\"}}\n"),
            Self::Urls => {
                let start = random.pick(&["http://h", "HTTP://H", "http://h"]);
                let port = random.pick(&["", ":80"]);
                let end = random.pick(&["", "#top"]);
                format!("{start}{id}.example{port}/{padding}{end}\n")
            }
            Self::AnyCase => {
                let line = format!(
                    "{id} {} {padding}\n",
                    random.pick(&["word", "Word", "WORD"])
                );
                match random.below(2) {
                    0 => line,
                    _ => line.to_uppercase(),
                }
            }
        };
        Record {
            key: format!("key {id}"),
            text: text.into_bytes(),
        }
    }
}
