//! A window as the judge of records: what it has forgotten is new again.

use super::wrong::{Adding, Wrong};
use super::{Judge, Memory, Over, Task};
use crate::human;
use crate::output::{self, Sink};
use crate::stream::{Halt, Pass, Report};
use crate::window::{Timed, TimedHash, Times};
use anyhow::{Result, anyhow};
use tamis::{Error, FileLock, Hasher, Span, Window, WindowOptions};
use tamis_records::key::RecordRule;
use tamis_report::window::is_over;

pub(super) struct Windowed {
    window: Window,
    times: Times,
    wrong: Wrong,
    is_over: bool,
}

impl Windowed {
    /// Says so if the window is over its rate already. `over` knows where it is kept, if it is.
    pub(super) fn new(window: Window, rule: &RecordRule, over: Option<&Over>) -> Result<Self> {
        let mut judge = Self {
            wrong: Wrong::from(rate(&window), Adding::AtOnce),
            times: Times::new(rule),
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
        if self.wrong.look_is_due() {
            self.look(over).map_err(Halt::Failed)?;
        }
        self.times.insert(&mut self.window, keys, new);
        self.wrong.decided(new);
        Ok(())
    }

    /// A window can't grow: with more keys than it was made for, its rate rises. Said once.
    fn look(&mut self, over: Option<&Over>) -> Result<()> {
        let (now, promised) = (rate(&self.window), self.window.rate());
        self.wrong.look(now);
        if self.is_over || !is_over(now, promised) {
            return Ok(());
        }
        self.is_over = true;
        let name = over.map_or("the window".to_owned(), |over| over.filter.to_string());
        let (keys, capacity) = (self.window.keys().get(), self.window.capacity());
        let text = self::over(&name, keys, capacity, now, promised);
        if over.is_some_and(|over| over.strict) {
            return Err(anyhow!(text));
        }
        output::warn(text);
        Ok(())
    }
}

/// The rate by the keys of each generation, without reading them all. One that counts keys is never over its rate.
fn rate(window: &Window) -> f64 {
    let (band, latest) = match (window.options().band(), window.latest()) {
        (Span::Keys(_), _) => return window.rate(),
        (Span::Time(_), None) => return 0.0,
        (Span::Time(band), Some(latest)) => (band, latest),
    };
    let generations = window.options().generation_count();
    let since = |nth: u32| window.keys_at(latest + nth * band);
    let keys = (0..=generations).map(|nth| since(nth).saturating_sub(since(nth + 1)) as f64);
    window.shape().rate_of(keys)
}

impl Judge for Windowed {
    fn added(&self) -> u64 {
        self.window.added()
    }

    fn save(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.window.update_under(lock)
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

/// That a window has more keys than it was made for.
pub(super) fn over(name: &str, keys: u64, capacity: u64, now: f64, promised: f64) -> String {
    format!(
        "{name} holds {} but was made for {} in its span: new records are now wrongly dropped at a rate of {} \
         and rising, instead of {}\n\
         hint: a window for more keys, -n",
        human::counted(keys, "key"),
        human::count(capacity),
        human::rate(now),
        human::rate(promised),
    )
}

/// In a window that lasts as long as the run.
pub(super) fn with_memory(
    options: &WindowOptions,
    task: &Task,
    sink: &mut Sink,
) -> Result<(Report, Memory)> {
    let hasher = task.input.hasher(Hasher::default());
    let window = Window::from_plan(&task.window_plan(options)?, hasher)?;
    let mut judges = [Windowed::new(window, &task.input.rule, None)?];
    let report = Pass::new(&task.input, &Timed(hasher), &mut judges)
        .print(task.print(), sink)
        .run(|judge: &mut Windowed, keys, new| judge.decide(keys, new, None))?;
    let [judge] = judges;
    let memory = judge.memory(&report);
    Ok((report, memory))
}
