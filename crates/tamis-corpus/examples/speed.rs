//! How fast paragraphs and 13-grams are judged, next to `cat` and with one thread and two.
//!
//! `cargo run --release -p tamis-corpus --example speed [MEGABYTES]`

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tamis_corpus::chunks::Source;
use tamis_corpus::engine::{Job, run};
use tamis_corpus::fold::Fold;
use tamis_corpus::output::Stream;
use tamis_corpus::rule::TextUnit;
use tamis_corpus::rule::UnitRule;
use tamis_corpus::seen::Seen;
use tamis_corpus::settings::Settings;

fn main() -> io::Result<()> {
    let megabytes = std::env::args()
        .nth(1)
        .and_then(|arg| arg.parse().ok())
        .unwrap_or(200);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("corpus.jsonl");
    make(&path, megabytes << 20)?;
    let bytes = std::fs::metadata(&path)?.len() as f64;
    for _ in 0..2 {
        let began = Instant::now();
        Command::new("cat")
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()?
            .wait_with_output()?;
        println!(
            "cat: {:.0} MB/s",
            bytes / 1e6 / began.elapsed().as_secs_f64()
        );
        for (name, unit, fold) in [
            ("paragraphs", TextUnit::Paragraph, ""),
            (
                "paragraphs, case and space folded",
                TextUnit::Paragraph,
                "case,space",
            ),
            ("13-grams", TextUnit::Words(13), ""),
            ("13-grams, case folded", TextUnit::Words(13), "case"),
            ("near 0.8", TextUnit::Alike(80), ""),
        ] {
            let rule = UnitRule::new(unit, fold.parse().unwrap_or_else(|_| Fold::default()));
            for threads in [1, 2] {
                let (seconds, processor, memory) = measure(&path, rule, threads);
                println!(
                    "{name}, {threads} threads: {:.0} MB/s, {:.0} MB/s a core, {:.0} MB of filter",
                    bytes / 1e6 / seconds,
                    bytes / 1e6 / processor,
                    memory as f64 / 1e6
                );
            }
        }
    }
    Ok(())
}

/// Seconds, seconds of all processors, and bytes of the filter.
fn measure(path: &Path, rule: UnitRule, threads: usize) -> (f64, f64, u64) {
    let source = Source::by_name(path.to_owned());
    let text = std::fs::metadata(path).map_or(0, |file| file.len());
    let mut seen = Seen::sized(rule, text, rule.usual_rate()).expect("there is memory");
    let (began, before) = (Instant::now(), processor_seconds());
    let outcome = run(Job {
        settings: &Settings::new(rule),
        sources: &[source],
        first: 0,
        seen: &mut seen,
        outputs: &mut Stream::new(io::sink()),
        threads,
        progress: &Default::default(),
    });
    outcome.result.expect("the corpus is read");
    (
        began.elapsed().as_secs_f64(),
        processor_seconds() - before,
        seen.bytes(),
    )
}

/// Of this process, as Linux counts it in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// Records of English-like words: paragraphs of about 60 words, a tenth of them repeated.
fn make(path: &Path, bytes: usize) -> io::Result<()> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    let mut state = 7u64;
    let mut draw = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let letters = b"etaoinshrdlucmfwypvbgk";
    let words: Vec<String> = (0..20_000)
        .map(|_| {
            (0..2 + draw(8))
                .map(|_| letters[draw(22) as usize] as char)
                .collect()
        })
        .collect();
    let mut known = Vec::new();
    let (mut written, mut id) = (0, 0);
    while written < bytes {
        let mut text = String::new();
        for _ in 0..1 + draw(10) {
            if !known.is_empty() && draw(10) == 0 {
                let again: &String = &known[draw(known.len() as u64) as usize];
                text += again;
            } else {
                let chosen = (0..20 + draw(80)).map(|_| &*words[draw(20_000) as usize]);
                let paragraph = chosen.collect::<Vec<_>>().join(" ") + ".\\n\\n";
                text += &paragraph;
                if known.len() < 10_000 {
                    known.push(paragraph);
                }
            }
        }
        let record =
            format!("{{\"id\": \"doc-{id}\", \"text\": \"{text}\", \"source\": \"made\"}}\n");
        file.write_all(record.as_bytes())?;
        (written, id) = (written + record.len(), id + 1);
    }
    file.flush()
}
