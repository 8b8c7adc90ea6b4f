//! Counts answers, since the start and in recent minutes.

use crate::replies::Replies;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Minutes with separate counts.
const MINUTES: u64 = 15;

/// Answers of one filter.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: Answers,
    /// By minutes since 1970, newest last.
    recent: VecDeque<(u64, Answers)>,
}

/// The number of keys by answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Queried, and perhaps present.
    yes: u64,
    /// Queried, and certainly absent.
    no: u64,
    /// Added, and new.
    new: u64,
    /// Added, but apparently present before.
    known: u64,
}

impl Answers {
    pub(crate) fn to_check(found: &Replies) -> Self {
        Self {
            yes: found.yes(),
            no: found.no(),
            ..Self::default()
        }
    }

    pub(crate) fn to_add(were_new: &Replies) -> Self {
        Self {
            new: were_new.yes(),
            known: were_new.no(),
            ..Self::default()
        }
    }

    /// The counts, with the words for them.
    pub(crate) fn named(self) -> [(&'static str, u64); 4] {
        [
            ("yes", self.yes),
            ("no", self.no),
            ("new", self.new),
            ("known", self.known),
        ]
    }

    fn add(&mut self, more: Self) {
        self.yes += more.yes;
        self.no += more.no;
        self.new += more.new;
        self.known += more.known;
    }
}

impl Tally {
    pub(crate) fn add(&self, more: Answers) {
        self.add_at(minute_now(), more);
    }

    fn add_at(&self, minute: u64, more: Answers) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all.add(more);
        match counts.recent.back_mut() {
            // If the clock was set back, counts into the last minute.
            Some((last, answers)) if *last >= minute => answers.add(more),
            _ => counts.recent.push_back((minute, more)),
        }
        if counts.recent.len() as u64 > MINUTES {
            counts.recent.pop_front();
        }
    }

    /// Since the start.
    pub(crate) fn all(&self) -> Answers {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    /// The last minutes, oldest first; the current one is last.
    pub(crate) fn recent(&self) -> Value {
        self.recent_at(minute_now())
    }

    fn recent_at(&self, now: u64) -> Value {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minutes = (0..MINUTES).rev().filter_map(|ago| now.checked_sub(ago));
        minutes
            .map(|minute| {
                let found = counts.recent.iter().find(|(at, _)| *at == minute);
                let answers = found.map_or(Answers::default(), |(_, answers)| *answers);
                let mut told = json!({ "at": minute * 60 });
                for (name, count) in answers.named() {
                    told[name] = count.into();
                }
                told
            })
            .collect()
    }
}

fn minute_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(answers: &[bool]) -> Answers {
        let mut replies = Replies::default();
        replies.extend(answers);
        Answers::to_check(&replies)
    }

    fn added(answers: &[bool]) -> Answers {
        let mut replies = Replies::default();
        replies.extend(answers);
        Answers::to_add(&replies)
    }

    #[test]
    fn minutes_are_told_apart_and_forgotten() {
        let tally = Tally::default();
        tally.add_at(1_000, checked(&[true, false, false]));
        tally.add_at(1_001, added(&[true, true, false]));
        tally.add_at(1_001, checked(&[true]));
        let recent = tally.recent_at(1_002);
        let recent = recent.as_array().unwrap();
        assert_eq!(recent.len(), 15);
        assert_eq!(
            recent[12],
            json!({ "at": 60_000, "yes": 1, "no": 2, "new": 0, "known": 0 })
        );
        assert_eq!(
            recent[13],
            json!({ "at": 60_060, "yes": 1, "no": 0, "new": 2, "known": 1 })
        );
        assert_eq!(
            recent[14],
            json!({ "at": 60_120, "yes": 0, "no": 0, "new": 0, "known": 0 })
        );

        for minute in 2_000..2_100 {
            tally.add_at(minute, checked(&[true]));
        }
        // The clock was set back: nothing is lost, and nothing panics.
        tally.add_at(5, checked(&[true]));
        let recent = tally.recent_at(2_099);
        let yes = |minute: &Value| minute["yes"].as_u64().unwrap();
        assert_eq!(recent.as_array().unwrap().iter().map(yes).sum::<u64>(), 16);
        assert_eq!(tally.all().yes, 103);
        assert_eq!(tally.recent_at(0).as_array().unwrap().len(), 1);
    }
}
