//! A window that judges records: a forgotten key is new again.

use super::wrong::{Adding, Wrong};
use super::{Judge, Memory, Over, Task};
use crate::human;
use crate::output::{self, Sink};
use crate::stream::{Halt, Pass, Report};
use crate::window::{Timed, TimedHash, Times};
use anyhow::{Result, anyhow};
use tamis::{Error, Hasher, Window, file::FileLock, window::WindowOptions};
use tamis_records::key::RecordRule;
use tamis_report::window::is_over;

pub(super) struct Windowed {
    window: Window,
    times: Times,
    wrong: Wrong,
    /// The most bytes it may grow to.
    most: u64,
    is_over: bool,
}

impl Windowed {
    /// Warns if the window already exceeds its rate. `over` names its file, if it has one.
    pub(super) fn new(
        window: Window,
        rule: &RecordRule,
        most: Option<u64>,
        over: Option<&Over>,
    ) -> Result<Self> {
        let mut judge = Self {
            wrong: Wrong::from(window.rate_now(), Adding::AtOnce).holding(window.keys().get(), 0),
            times: Times::new(rule),
            most: most.unwrap_or(u64::MAX),
            window,
            is_over: false,
        };
        judge.look(over)?;
        Ok(judge)
    }

    pub(super) fn decide(
        &mut self,
        keys: &[TimedHash],
        new: &mut [bool],
        over: Option<&Over>,
    ) -> Result<(), Halt> {
        let mut at = 0;
        while at < keys.len() {
            if self.wrong.look_is_due() {
                self.look(over).map_err(Halt::Failed)?;
            }
            // Only as far as the known rate stays roughly right.
            let step = self.wrong.until_look() as usize;
            let to = keys.len().min(at.saturating_add(step));
            let may_grow = self.has_room((to - at) as u64, over)?;
            let new = &mut new[at..to];
            self.times
                .insert(&mut self.window, &keys[at..to], new, may_grow);
            self.wrong.decided(new);
            at = to;
        }
        Ok(())
    }

    /// Whether the window may grow. If it can't and lacks room for `keys`, warns once, or fails with `--strict`.
    fn has_room(&mut self, keys: u64, over: Option<&Over>) -> Result<bool, Halt> {
        let may_grow = self.window.bytes_grown() <= self.most;
        if may_grow || self.is_over || self.window.room() >= keys {
            return Ok(may_grow);
        }
        self.is_over = true;
        let text = format!(
            "{} is full, and with room for twice the keys it would take {}, more than --max-memory",
            named(over),
            human::size(self.window.bytes_grown()),
        );
        if over.is_some_and(|over| over.strict) {
            return Err(Halt::Failed(anyhow!(text)));
        }
        output::warn(format_args!(
            "{text}: more and more new records will be dropped; the summary estimates how many"
        ));
        Ok(false)
    }

    /// Warns once that a window that could not grow drops too many records.
    fn look(&mut self, over: Option<&Over>) -> Result<()> {
        let (now, promised) = (self.window.rate_now(), self.window.rate());
        self.wrong.look(now);
        if self.is_over || !is_over(now, promised) {
            return Ok(());
        }
        self.is_over = true;
        let text = self::over(&named(over), self.window.capacity(), now, promised);
        if over.is_some_and(|over| over.strict) {
            return Err(anyhow!(text));
        }
        output::warn(text);
        Ok(())
    }
}

fn named(over: Option<&Over>) -> String {
    over.map_or("the window".to_owned(), |over| over.filter.to_string())
}

impl Judge for Windowed {
    fn added(&self) -> u64 {
        self.window.added()
    }

    fn save(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.window.update_under(lock)
    }

    fn finish(&mut self) {
        self.times.finish(&mut self.window);
    }

    fn memory(mut self, report: &Report) -> Memory {
        if let Err(over) = self.look(None) {
            output::warn(over);
        }
        self.times.warn(report.without_time);
        Memory {
            times: Some(self.times.odd()),
            ..Memory::local(self.window.bytes(), self.wrong.expected())
        }
    }
}

/// The message that a window exceeds its capacity.
pub(super) fn over(name: &str, capacity: u64, now: f64, promised: f64) -> String {
    format!(
        "{name} has more keys than the {} it was made for: new records are now wrongly dropped at a \
         rate of {}, instead of {}\n\
         hint: a window for more keys, --capacity",
        human::count(capacity),
        human::rate(now),
        human::rate(promised),
    )
}

/// Judges with a window that lasts as long as the run.
pub(super) fn with_memory(
    options: &WindowOptions,
    task: &Task,
    sink: &mut Sink,
) -> Result<(Report, Memory)> {
    let hasher = task.input.hasher(Hasher::default());
    let window = Window::from_plan(&task.window_plan(options)?, hasher)?;
    let mut judges = [Windowed::new(
        window,
        &task.input.rule,
        task.args.max_memory,
        None,
    )?];
    let report = Pass::new(&task.input, &Timed(hasher), &mut judges)
        .print_to(task.print(), sink)
        .run(|judge: &mut Windowed, keys, new| judge.decide(keys, new, None))?;
    let [mut judge] = judges;
    judge.finish();
    let memory = judge.memory(&report);
    Ok((report, memory))
}
