//! Runs one process per contender, one after the other.

use super::contender::Contender;
use super::keys::Keys;
use super::report::{Measured, Memory, Refusal, Row, Step, StepResult};
use super::step::What;
use super::work::Settings;
use crate::human;
use anyhow::{Context, Result};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tamis::internals::file::TemporaryFolder;

/// The hidden subcommand that runs in such a process.
pub(crate) const SUBCOMMAND: &str = "compare-step";

pub(crate) struct Lab<'a> {
    pub(crate) dir: &'a Path,
    /// The time limit of a process.
    pub(crate) limit: Duration,
    /// Stops everything.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl Lab<'_> {
    /// All rows, unless stopped.
    pub(crate) fn measure(&self, keys: &Keys, rate: f64) -> Result<Option<Vec<Row>>> {
        let settings = Settings {
            rate,
            held: keys.held,
            range: keys.range,
            absent_is_given: keys.absent_is_given,
        };
        settings.save(self.dir)?;
        let Some(baseline) = self.baseline()? else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        for contender in Contender::ALL {
            self.tell(contender.name());
            let row = self.measure_one(contender, baseline)?;
            self.tell("");
            if self.stop.load(Relaxed) {
                return Ok(None);
            }
            rows.push(row);
        }
        Ok(Some(rows))
    }

    /// Queries these once more, and keeps the faster run of each.
    pub(crate) fn ask_again(&self, rows: &mut [Row], contenders: &[Contender]) -> Result<()> {
        for row in rows {
            if let Ok(measured) = &mut row.result
                && contenders.contains(&row.contender)
                && !self.stop.load(Relaxed)
            {
                self.tell(row.contender.name());
                let (result, _) = self.step(row.contender, What::Ask, self.limit)?;
                self.tell("");
                if let Ok(Step {
                    answers: Some(again),
                    ..
                }) = result
                {
                    let (before, now) = (measured.answers.speed(), again.speed());
                    measured.noise = measured.noise.max(now / before).max(before / now);
                    measured.answers.keep_fastest(&again);
                }
            }
        }
        Ok(())
    }

    /// The memory of a process that only reads the keys.
    fn baseline(&self) -> Result<Option<Option<Memory>>> {
        let contender = Contender::HashSet; // ignored
        let (result, _) = self.step(contender, What::Read, Duration::MAX)?;
        match result {
            _ if self.stop.load(Relaxed) => Ok(None),
            Ok(step) => Ok(Some(step.memory)),
            Err(Refusal::Failed(why) | Refusal::Unfit(why)) => {
                anyhow::bail!("the keys could not be read back: {why}")
            }
        }
    }

    fn measure_one(&self, contender: Contender, baseline: Option<Memory>) -> Result<Row> {
        let mut commands = Vec::new();
        let result = self.measure_steps(contender, baseline, &mut commands)?;
        Ok(Row {
            contender,
            result,
            commands,
        })
    }

    fn measure_steps(
        &self,
        contender: Contender,
        baseline: Option<Memory>,
        commands: &mut Vec<String>,
    ) -> Result<Result<Measured, Refusal>> {
        let above = |memory: Option<Memory>| Some(memory?.own.saturating_sub(baseline?.own));
        let mut run = |what| {
            let (result, command) = self.step(contender, what, self.limit)?;
            commands.push(command);
            anyhow::Ok(result)
        };
        let built = if contender.is_file() {
            match run(What::Build)? {
                Ok(built) => Some(built),
                Err(refusal) => return Ok(Err(refusal)),
            }
        } else {
            None
        };
        let asked = match run(What::Ask)? {
            Ok(asked) => asked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let built = built.as_ref().unwrap_or(&asked);
        let answers = asked.answers.clone().unwrap_or_default();
        if answers.present.yes < answers.present.keys {
            let missing = answers.present.keys - answers.present.yes;
            let why = format!("it denies {missing} of the keys that it holds");
            return Ok(Err(Refusal::Failed(why)));
        }
        Ok(Ok(Measured {
            size: asked.size,
            memory: above(asked.memory),
            build_memory: above(built.memory),
            process_memory: asked.memory.map(|memory| memory.peak),
            baseline_memory: baseline.map(|memory| memory.peak),
            build_seconds: built.build_seconds,
            noise: 1.0,
            answers,
        }))
    }

    /// The report of a step's process, and its command line.
    fn step(
        &self,
        contender: Contender,
        what: What,
        limit: Duration,
    ) -> Result<(StepResult, String)> {
        let program = std::env::current_exe().context("finding this program")?;
        let what = match what {
            What::Read => "read",
            What::Build => "build",
            What::Ask => "ask",
        };
        let line = [
            &*program.to_string_lossy(),
            SUBCOMMAND,
            &*self.dir.to_string_lossy(),
            contender.name(),
            what,
        ]
        .join(" ");
        let child = Command::new(program)
            .arg(SUBCOMMAND)
            .arg(self.dir)
            .args([contender.name(), what])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {line}"))?;
        Ok((self.wait(Running(child), limit)?, line))
    }

    fn wait(&self, mut running: Running, limit: Duration) -> Result<StepResult> {
        let start = Instant::now();
        let failed = |why: String| Ok(Err(Refusal::Failed(why)));
        let status = loop {
            if let Some(status) = running.0.try_wait()? {
                break status;
            }
            if self.stop.load(Relaxed) {
                return failed("stopped".into());
            }
            if start.elapsed() > limit {
                let limit = human::duration(limit);
                return failed(format!("not done in {limit} (--limit)"));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        // The output is short enough for the pipe, so the process never blocks on us.
        let mut said = String::new();
        if let Some(mut out) = running.0.stdout.take() {
            out.read_to_string(&mut said)?;
        }
        match serde_json::from_str(&said) {
            Ok(result) => Ok(result),
            Err(_) => failed(format!("its process ended early: {status}")),
        }
    }

    /// Shows progress on a terminal.
    fn tell(&self, name: &str) {
        if std::io::stderr().is_terminal() {
            match name {
                "" => eprint!("\r\x1b[K"),
                name => eprint!("\r\x1b[Kmeasuring {name}"),
            }
        }
    }
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The working folder.
pub(crate) enum Folder {
    /// Removed when dropped.
    Temporary(TemporaryFolder),
    Kept(PathBuf),
}

impl Folder {
    /// A temporary folder, or one to keep, which must not exist yet.
    pub(crate) fn create(keep: Option<&Path>) -> Result<Self> {
        Ok(match keep {
            None => {
                let folder = TemporaryFolder::new("tamis-compare-");
                Self::Temporary(folder.context("making a folder for temporary files")?)
            }
            Some(path) => {
                std::fs::create_dir(path)
                    .with_context(|| format!("making the folder {}", path.display()))?;
                Self::Kept(path.canonicalize()?)
            }
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Temporary(temporary) => temporary.path(),
            Self::Kept(path) => path,
        }
    }
}

/// Makes this process die with its parent, however the parent ends.
pub(crate) fn end_with_parent() {
    // SAFETY: asks the system for a signal, and changes nothing else.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
