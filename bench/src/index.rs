//! `tamis index` and `tamis grep` beside rg: sixty questions on a tree of logs,
//! a third of its files packed.
//!
//! Every answer is checked: the lines are those of rg, byte for byte.

use crate::child::{Child, Measured};
use crate::clock::Rounds;
use crate::corpus::{Packing, Planned, Tree};
use crate::dedup::{Place, build_tamis};
use crate::queries::{Query, Syntax, sixty};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SEED: u64 = 29;
/// A word that is nowhere: to find that out, rg reads everything.
const NOWHERE: &str = "zzzznowherezzzz";

pub fn run(mut args: Args) -> Result<Suite, String> {
    let files = args.take("--files", "5000")?;
    let bytes = args.take("--bytes", "4e9")?;
    let rounds = args.take("--rounds", "3")?;
    args.finish()?;
    let tamis = build_tamis(Path::new(env!("CARGO_MANIFEST_DIR")), "")?;
    // Where logs live, on a disk; after they are written, they are in the page cache.
    let place = Place::make_in(std::env::temp_dir())?;
    // What is printed goes to memory, so that no disk is measured.
    let printed = Place::make()?;
    let tree = Tree::new(number(&files)?, number(&bytes)?, SEED);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let text = tree.write(&place.0.join("tree"), threads);
    let logs = Logs {
        tamis: &tamis,
        place: &place.0,
        printed: &printed.0,
        text: text.map_err(|e| format!("{}: {e}", place.0.display()))?,
        files: tree.files.len(),
        tree,
    };
    println!(
        "{} files, {:.2} GB of text",
        logs.files,
        logs.text as f64 / 1e9
    );
    let mut rows = logs.building(number(&rounds)?)?;
    rows.extend(logs.asking(number(&rounds)?)?);
    rows.extend(logs.changing()?);
    Ok(Suite {
        name: "index".into(),
        title: "Sixty questions about a tree of logs".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- index --files {files} --bytes {bytes} --rounds {rounds}"
        ),
        machine: machine(),
        peers: vec!["Tamis".into(), "rg -z".into()],
        rows,
    })
}

struct Logs<'a> {
    tamis: &'a Path,
    place: &'a Path,
    printed: &'a Path,
    tree: Tree,
    /// Bytes, unpacked.
    text: u64,
    files: usize,
}

/// The groups of the rows.
const BUILDING: &str = "building";
const WARM: &str = "files in the cache";
const COLD: &str = "files on the disk";
const LATER: &str = "later";

impl Logs<'_> {
    /// Processor time, size and memory.
    fn building(&self, rounds: u64) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        let (mut processor, mut wall) = (Rounds::new(), Rounds::new());
        let (mut peak, mut peak_of_rg) = (0, 0);
        for _ in 0..rounds {
            self.forget("word")?;
            let ours = self.index(&["--key", "word", "tree"], "word")?;
            let theirs = self.rg(&Query::new("", Syntax::Words, vec![NOWHERE.into()]), "none")?;
            processor.add([ours.processor, theirs.processor].into_iter());
            wall.add([ours.wall, theirs.wall].into_iter());
            (peak, peak_of_rg) = (peak.max(ours.peak), peak_of_rg.max(theirs.peak));
            println!(
                "building: {:.2} times rg's processor time, {:.2} times its time, {} MB of memory",
                ours.processor / theirs.processor,
                ours.wall / theirs.wall,
                ours.peak >> 20
            );
        }
        let trigrams = self.index(&["--key", "trigram", "tree"], "trigram")?;
        let absent = processor.medians()[1];
        println!(
            "trigrams: {:.2} times rg's processor time",
            trigrams.processor / absent
        );
        rows.push(Row::times(
            BUILDING,
            "words, processor time (rg: an absent word)",
            &processor,
        ));
        rows.push(Row::times(
            BUILDING,
            "words, time (rg: an absent word)",
            &wall,
        ));
        let mut of_trigrams = Rounds::new();
        of_trigrams.add([trigrams.processor, absent].into_iter());
        rows.push(Row::times(
            BUILDING,
            "trigrams, processor time (rg: an absent word)",
            &of_trigrams,
        ));
        for (index, what) in [
            ("word", "index of words, of the text"),
            ("trigram", "index of trigrams, of the text"),
        ] {
            let share = self.size(index)? as f64 / self.text as f64;
            println!("{what}: {:.2} %", share * 100.0);
            rows.push(Row::shares(BUILDING, what, vec![share]));
        }
        let peak = peak.max(trigrams.peak);
        rows.push(Row::memory(
            BUILDING,
            "memory",
            vec![peak as f64, peak_of_rg as f64],
        ));
        Ok(rows)
    }

    /// The sixty questions, and of each kind one without the page cache.
    fn asking(&self, rounds: u64) -> Result<Vec<Row>, String> {
        let queries = sixty(&self.tree);
        let mut rounds_of: BTreeMap<usize, Rounds> = BTreeMap::new();
        let mut tasks: Vec<&str> = Vec::new();
        let mut worst: f64 = 0.0;
        let mut missed = 0;
        println!("of rg's time | task | question");
        for query in &queries {
            let task = tasks
                .iter()
                .position(|task| *task == query.task)
                .unwrap_or(tasks.len());
            if task == tasks.len() {
                tasks.push(query.task);
            }
            let mut best = [f64::INFINITY; 2];
            for round in 0..rounds {
                let times = self.ask(query, round)?;
                best = [best[0].min(times[0]), best[1].min(times[1])];
                rounds_of
                    .entry(task)
                    .or_insert_with(Rounds::new)
                    .add(times.into_iter());
            }
            let share = best[0] / best[1];
            let over = if share > query.bar {
                " OVER ITS BAR"
            } else {
                ""
            };
            missed += usize::from(share > query.bar);
            worst = worst.max(share);
            println!("{share:.3} | {} | {query}{over}", query.task);
        }
        println!(
            "{missed} of {} over their bars; the slowest takes {worst:.2} of rg's time",
            queries.len()
        );
        let mut rows: Vec<Row> = (tasks.iter().enumerate())
            .map(|(number, task)| Row::times(WARM, task, &rounds_of[&number]))
            .collect();
        rows.push(Row::shares(
            WARM,
            "the slowest of all, of rg's time",
            vec![worst],
        ));
        if drop_caches().is_err() {
            println!(
                "the page cache can't be emptied by this user: nothing was measured without it"
            );
            return Ok(rows);
        }
        for (number, task) in tasks.iter().enumerate() {
            let query = queries.iter().find(|query| query.task == *task);
            let mut cold = Rounds::new();
            let query = query.expect("each task has questions");
            let list = self.list(query)?;
            drop_caches()?;
            let ours = self.tamis(&query.for_tamis(&["word"], &list), "ours")?;
            drop_caches()?;
            let theirs = self.rg(query, "theirs")?;
            cold.add([ours.wall, theirs.wall].into_iter());
            println!("cold: {:.3} | {task} | {query}", ours.wall / theirs.wall);
            if number < 6 || *task == "a common word" {
                rows.push(Row::times(COLD, task, &cold));
            }
        }
        Ok(rows)
    }

    /// An update, and a rotation of everything.
    fn changing(&self) -> Result<Vec<Row>, String> {
        self.forget("word")?;
        let built = self.index(&["--key", "word", "tree"], "word")?;
        let idle = self.index(&[], "word")?;
        // A tenth of the files that are still written.
        let plain: Vec<&Planned> = (self.tree.files.iter())
            .filter(|file| file.packing == Packing::Plain)
            .step_by(10)
            .collect();
        for file in &plain {
            let more = self.text / 100 / plain.len() as u64;
            let grown = file.grow(&self.place.join("tree"), more);
            grown.map_err(|e| format!("{}: {e}", file.path.display()))?;
        }
        let update = self.index(&[], "word")?;
        for file in &self.tree.files {
            let path = self.place.join("tree").join(&file.path);
            let rotated = rotated(&path);
            fs::rename(&path, rotated).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let rotation = self.index(&[], "word")?;
        let counted = Query::new("-c", Syntax::Words, vec!["FATAL".into()]);
        self.ask(&counted, 0)?;
        println!(
            "update: {:.2} % of the building's time, {} bytes read; rotation: {} bytes read, {} when nothing changed",
            update.wall / built.wall * 100.0,
            update.read,
            rotation.read,
            idle.read,
        );
        Ok(vec![
            Row::shares(
                LATER,
                "update after 1 % was appended, of the building's time",
                vec![update.wall / built.wall],
            ),
            Row::shares(
                LATER,
                "update when nothing changed, of the building's time",
                vec![idle.wall / built.wall],
            ),
            Row::shares(
                LATER,
                "update after all files were renamed, of the text read again",
                vec![rotation.read.saturating_sub(idle.read) as f64 / self.text as f64],
            ),
        ])
    }

    /// Nanoseconds of both, in turns; in the first round the answers are compared.
    fn ask(&self, query: &Query, round: u64) -> Result<[f64; 2], String> {
        let list = self.list(query)?;
        let ours = || self.tamis(&query.for_tamis(&["word"], &list), "ours");
        let theirs = || self.rg(query, "theirs");
        let (ours, theirs) = match round % 2 {
            0 => (ours()?, theirs()?),
            _ => {
                let theirs = theirs()?;
                (ours()?, theirs)
            }
        };
        if ours.code != theirs.code {
            return Err(format!(
                "{query}: exit {}, but {} of rg",
                ours.code, theirs.code
            ));
        }
        if round == 0 {
            self.compare(query)?;
        }
        Ok([ours.wall, theirs.wall])
    }

    /// The same lines, in any order: rg's threads print as they find.
    fn compare(&self, query: &Query) -> Result<(), String> {
        let read =
            |name: &str| fs::read(self.printed.join(name)).map_err(|e| format!("{name}: {e}"));
        let (ours, theirs) = (read("ours")?, read("theirs")?);
        let sorted = |text: &[u8]| {
            let mut lines: Vec<Vec<u8>> = text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort_unstable();
            lines
        };
        if ours == theirs || sorted(&ours) == sorted(&theirs) {
            return Ok(());
        }
        Err(format!(
            "{query}: {} bytes of lines, but {} of rg",
            ours.len(),
            theirs.len()
        ))
    }

    /// Where the patterns of a question are, if it reads them from a file.
    fn list(&self, query: &Query) -> Result<PathBuf, String> {
        let list = self.printed.join("patterns");
        if query.from_file {
            fs::write(&list, query.patterns.join("\n") + "\n").map_err(|e| e.to_string())?;
        }
        Ok(list)
    }

    fn index(&self, args: &[&str], name: &str) -> Result<Measured, String> {
        let mut all = vec!["index", "-q", "-o", name];
        all.extend(args);
        let all: Vec<String> = all.into_iter().map(String::from).collect();
        self.tamis(&all, "none")
    }

    fn tamis(&self, args: &[String], printed: &str) -> Result<Measured, String> {
        self.run(self.tamis, args, printed)
    }

    fn rg(&self, query: &Query, printed: &str) -> Result<Measured, String> {
        let args = query.for_rg("tree", &self.printed.join("patterns"));
        self.run(Path::new("rg"), &args, printed)
    }

    fn run(&self, program: &Path, args: &[String], printed: &str) -> Result<Measured, String> {
        let child = Child {
            program,
            args,
            folder: self.place,
            printed: &self.printed.join(printed),
        };
        let ran = child
            .run()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        match ran.code {
            0 | 1 => Ok(ran),
            code => Err(format!("{} {args:?} ended with {code}", program.display())),
        }
    }

    /// What an index has beside it has its name first.
    fn files_of(&self, index: &str) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(self.place).map_err(|e| e.to_string())?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let named = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(index))
        };
        Ok(paths.filter(named).collect())
    }

    fn size(&self, index: &str) -> Result<u64, String> {
        let of = |path: PathBuf| -> u64 {
            match fs::read_dir(&path) {
                Ok(entries) => entries
                    .filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()))
                    .sum(),
                Err(_) => path.metadata().map_or(0, |data| data.len()),
            }
        };
        Ok(self.files_of(index)?.into_iter().map(of).sum())
    }

    fn forget(&self, index: &str) -> Result<(), String> {
        for path in self.files_of(index)? {
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }
}

/// `access.log` becomes `access.log.1`, and `access.log.gz` becomes `access.log.1.gz`.
fn rotated(path: &Path) -> PathBuf {
    match path.extension().and_then(|end| end.to_str()) {
        Some(end @ ("gz" | "zst")) => path.with_extension(format!("1.{end}")),
        _ => PathBuf::from(format!("{}.1", path.display())),
    }
}

/// Empties the system's cache of pages, if we may.
fn drop_caches() -> Result<(), String> {
    // SAFETY: it takes nothing and gives nothing.
    unsafe { libc::sync() };
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|e| format!("drop_caches: {e}"))
}
