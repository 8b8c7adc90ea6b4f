//! Events of a window of an hour in eight generations, with the answers that every host of windows must give: the
//! library, the command, the service, servers, other languages. They are in `golden/windows.tsv`, which the library's
//! own test creates.

use tamis::Moment;

pub(crate) const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tamis/tests/golden/windows.tsv"
);

/// One line: a meaning of windows, `add` or `ask`, a key, milliseconds since 1970, and the answer.
pub(crate) struct Event {
    pub(crate) is_asked: bool,
    pub(crate) key: String,
    pub(crate) at: Moment,
    /// Whether the key is new, or for `ask`, whether it is there.
    pub(crate) answer: bool,
}

/// The events of a meaning, `within` or `quiet`.
pub(crate) fn events(meaning: &str) -> Vec<Event> {
    let text = std::fs::read_to_string(FILE).unwrap();
    let of_meaning = text.lines().filter(|line| line.starts_with(meaning));
    let event = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [_, what, key, at, answer] => Event {
            is_asked: what == "ask",
            key: key.into(),
            at: Moment::from_micros(at.parse::<i64>().unwrap() * 1_000),
            answer: ["new", "yes"].contains(&answer),
        },
        _ => panic!("{line}"),
    };
    of_meaning.map(event).collect()
}

/// Compares the answers to all events, in order.
pub(crate) fn replay(meaning: &str, mut answer: impl FnMut(&Event) -> bool) {
    for (number, event) in events(meaning).iter().enumerate() {
        let (key, at) = (&event.key, event.at);
        assert_eq!(
            answer(event),
            event.answer,
            "{meaning}, event {number}: {key} at {at:?}"
        );
    }
}
