//! Explains a filter's answers, as text and as JSON.

use crate::about::line;
use crate::human;
use serde_json::{Value, json};
use tamis::internals::raw::{Cell, Explanation, Joined, Look, Slot, sum};
use tamis::{AnyFilter, Hash, Kind, Moment, body::Body};

/// What the cells and lines of a filter are called.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) cell: &'static str,
    pub(crate) line: &'static str,
    /// What a group of lines is called.
    pub(crate) part: &'static str,
}

impl Names {
    const fn of(kind: Kind) -> Self {
        let (cell, line) = match kind {
            Kind::Counting => ("counter", "line"),
            Kind::Fuse => ("slot", "shard"),
            Kind::Ribbon | Kind::Cascade => ("row", "line"),
            Kind::Window => ("bit", "row"),
            _ => ("bit", "line"),
        };
        let part = match kind {
            Kind::Cascade => "level",
            Kind::Window => "table",
            _ => "layer",
        };
        Self { cell, line, part }
    }
}

/// A key, what a filter finds for it, and what that means.
pub struct Explained {
    pub(crate) key: String,
    /// The key after the filter's rule, if that changed it.
    pub(crate) asked_as: Option<String>,
    /// The kind of filter, or the format of a foreign one.
    pub(crate) kind: (&'static str, &'static str),
    pub(crate) hash_name: &'static str,
    /// The hash in hexadecimal.
    pub(crate) hash: Option<String>,
    pub(crate) why: Explanation,
    pub(crate) names: Names,
    /// The current false-positive rate.
    pub(crate) rate_now: f64,
}

impl Explained {
    /// Explains a key with this hash; `rate_now` is the filter's current rate.
    pub fn of<B: Body>(filter: &AnyFilter<B>, key: &[u8], hash: Hash, rate_now: f64) -> Self {
        let rule = filter.hasher().rule();
        let made = rule.apply(key);
        Self {
            key: text(key),
            asked_as: (*made != *key).then(|| text(&made)),
            kind: ("kind", filter.kind().name()),
            hash_name: filter.hasher().name(),
            hash: Some(format!("{:032x}", hash.as_u128())),
            why: filter.explain(hash),
            names: Names::of(filter.kind()),
            rate_now,
        }
    }

    /// The same at a moment, which only windows use.
    pub fn at<B: Body>(mut self, filter: &AnyFilter<B>, hash: Hash, at: Moment) -> Self {
        self.why = filter.explain_at(hash, at);
        self
    }

    /// Explains a key of a foreign filter, given as the bytes that the filter
    /// hashes.
    #[cfg(feature = "formats")]
    pub fn foreign(
        filter: &tamis_formats::Foreign<'_>,
        key: &[u8],
        bytes: &[u8],
        rate_now: f64,
    ) -> Self {
        use tamis_formats::Format;
        let (cell, line, part) = match filter.format() {
            Format::FastFilter => ("slot", "line", "layer"),
            Format::Parquet => ("bit", "block", "row group"),
            Format::Orc => ("bit", "line", "row group"),
            Format::Poppy => ("bit", "bucket", "level"),
            Format::LevelDb => ("bit", "line", "part"),
            _ => ("bit", "line", "layer"),
        };
        Self {
            key: text(key),
            asked_as: None,
            kind: ("format", filter.format().name()),
            hash_name: filter.hash_name(),
            hash: None,
            why: filter.explain(bytes),
            names: Names { cell, line, part },
            rate_now,
        }
    }

    /// Whether the filter says "maybe"; "no" is certain.
    pub fn is_maybe(&self) -> bool {
        self.why.is_maybe()
    }

    /// The output of `tamis explain`.
    pub fn describe(&self) -> String {
        let mut out = line("key", &human::printable(&self.key));
        if let Some(made) = &self.asked_as {
            out += &line("asked as", &human::printable(made));
        }
        out += &match &self.hash {
            Some(hash) => line("hash", &format!("{hash} ({})", self.hash_name)),
            None => line("hash", self.hash_name),
        };
        for (number, look) in (1..).zip(&self.why.looks) {
            let answer = if look.is_maybe() { "maybe" } else { "no" };
            if let Some(part) = self.part() {
                out += &line(&format!("{part} {number}"), answer);
            }
            out += &self.describe_look(look);
        }
        let verdict = match self.is_maybe() {
            false => format!("no, certainly: {}", self.reason()),
            true => format!(
                "maybe: {}; a key that was never added gets this answer with probability {}",
                self.reason(),
                human::rate(self.rate_now)
            ),
        };
        out + &line("answer", &verdict)
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Value {
        let mut all = json!({
            "key": self.key,
            "hash_name": self.hash_name,
            "hash": self.hash,
            "answer": if self.is_maybe() { "maybe" } else { "no" },
            "why": self.reason(),
            "rate_now": self.rate_now,
            "joined": match self.why.joined { Joined::Layers => "any", Joined::Levels => "all" },
            "looks": self.why.looks.iter().map(|look| self.look_json(look)).collect::<Vec<_>>(),
        });
        let (name, value) = self.kind;
        all[name] = value.into();
        if let Some(made) = &self.asked_as {
            all["asked_as"] = made.as_str().into();
        }
        all
    }

    /// What its parts are called, if it has or may have several.
    fn part(&self) -> Option<&'static str> {
        match self.why.joined {
            Joined::Layers if self.why.looks.len() == 1 => None,
            _ => Some(self.names.part),
        }
    }

    /// The reason for the answer.
    fn reason(&self) -> String {
        let looks = &self.why.looks;
        let decides = |maybe: bool| {
            let found = looks.iter().position(|look| look.is_maybe() == maybe);
            let nth = found.unwrap_or(0);
            let reason = self.reason_of(&looks[nth]);
            match self.part() {
                Some(part) => format!("in {part} {}, {reason}", nth + 1),
                None => reason,
            }
        };
        match (self.why.joined, self.is_maybe()) {
            _ if looks.is_empty() => "the filter is empty".into(),
            (_, maybe) if looks.len() == 1 => decides(maybe),
            (Joined::Layers, true) => decides(true),
            (Joined::Layers, false) => {
                format!("none of the {} {}s has it", looks.len(), self.names.part)
            }
            (Joined::Levels, false) => decides(false),
            (Joined::Levels, true) => format!("it passes every {}", self.names.part),
        }
    }

    /// The reason for one look.
    fn reason_of(&self, look: &Look) -> String {
        let name = self.names.cell;
        match look {
            Look::Cells { cells, .. } => match cells.iter().find(|cell| cell.value == 0) {
                Some(zero) => format!("{} is 0", self.place(zero)),
                None if name == "bit" => format!("all {} bits are 1", cells.len()),
                None => format!(
                    "none of its {} is 0",
                    human::counted(cells.len() as u64, name)
                ),
            },
            Look::Slots { places, .. } => {
                let mut slots = places.iter().flatten();
                match slots.find(|slot| slot.is_it) {
                    Some(slot) => format!("slot {} holds its fingerprint", slot.at),
                    None => "no slot of its places holds its fingerprint".into(),
                }
            }
            Look::Sum { fingerprint, cells } => {
                let (sum, name) = (sum(cells), human::counted(cells.len() as u64, name));
                match (cells.is_empty(), sum == *fingerprint) {
                    (true, _) => "there is nothing where it would be".into(),
                    (_, true) => format!("the exclusive or of its {name} is its fingerprint"),
                    (_, false) => format!(
                        "the exclusive or of its {name} is {sum:#x}, its fingerprint {fingerprint:#x}"
                    ),
                }
            }
            Look::Unknown => "there is no filter, so any key may be there".into(),
            _ => String::new(),
        }
    }

    /// The name of a cell.
    fn place(&self, cell: &Cell) -> String {
        let Names {
            cell: name, line, ..
        } = self.names;
        match cell.line {
            Some(number) => format!("{name} {} of {line} {number}", cell.at),
            None => format!("{name} {}", cell.at),
        }
    }

    fn describe_look(&self, look: &Look) -> String {
        let mut out = String::new();
        match look {
            Look::Cells { cells, all } => {
                out += &self.describe_cells(cells, |value| value.to_string());
                out += &drawn(cells, all);
            }
            Look::Slots {
                fingerprint,
                places,
            } => {
                out += &line("fingerprint", &format!("{fingerprint:#x}"));
                for (number, slots) in (1..).zip(places) {
                    let text = match (slots.first(), slots.last()) {
                        // A window has too many slots to list.
                        (Some(first), Some(last)) if slots.len() > 4 => {
                            let taken = slots.iter().filter(|slot| slot.holds.is_some()).count();
                            let own = slots.iter().find(|slot| slot.is_it);
                            let own = own
                                .map_or(String::new(), |own| format!("; slot {} holds it", own.at));
                            format!(
                                "slots {} to {}, {taken} of {} taken{own}",
                                first.at,
                                last.at,
                                slots.len()
                            )
                        }
                        _ => slots
                            .iter()
                            .map(describe_slot)
                            .collect::<Vec<_>>()
                            .join(", "),
                    };
                    out += &line(&format!("place {number}"), &text);
                }
            }
            Look::Sum { fingerprint, cells } => {
                out += &line("fingerprint", &format!("{fingerprint:#x}"));
                out += &match (cells.first(), cells.last()) {
                    // A ribbon filter has too many cells to list.
                    (Some(first), Some(last)) if cells.len() > 8 => line(
                        &format!("{}s", self.names.cell),
                        &format!("{} of those from {} to {}", cells.len(), first.at, last.at),
                    ),
                    _ => self.describe_cells(cells, |value| format!("{value:#x}")),
                };
                out += &line("exclusive or", &format!("{:#x}", sum(cells)));
            }
            _ => {}
        }
        out
    }

    /// One text line for each line of the filter.
    fn describe_cells(&self, cells: &[Cell], value: impl Fn(u64) -> String) -> String {
        let mut out = String::new();
        for cells in cells.chunk_by(|a, b| a.line == b.line) {
            let shown: Vec<_> = cells
                .iter()
                .map(|cell| format!("{} is {}", cell.at, value(cell.value)))
                .collect();
            let name = format!("{}s", self.names.cell);
            let place = match cells[0].line {
                Some(number) => format!("in {} {number}: ", self.names.line),
                None => String::new(),
            };
            out += &line(&name, &(place + &shown.join(", ")));
        }
        out
    }

    fn look_json(&self, look: &Look) -> Value {
        let cells_json = |cells: &[Cell]| -> Vec<Value> {
            let cell = |cell: &Cell| {
                let mut all = json!({ "at": cell.at, "value": cell.value });
                if let Some(number) = cell.line {
                    all[self.names.line] = number.into();
                }
                all
            };
            cells.iter().map(cell).collect()
        };
        let cells_name = format!("{}s", self.names.cell);
        let mut all = json!({ "maybe": look.is_maybe() });
        match look {
            Look::Cells { cells, all: drawn } => {
                all[cells_name] = cells_json(cells).into();
                if !drawn.is_empty() {
                    all["all"] = json!(drawn);
                }
            }
            Look::Slots {
                fingerprint,
                places,
            } => {
                let slot = |slot: &Slot| json!({ "at": slot.at, "fingerprint": slot.holds, "match": slot.is_it });
                let places = places.iter();
                all["fingerprint"] = (*fingerprint).into();
                all["places"] = places
                    .map(|slots| slots.iter().map(slot).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
                    .into();
            }
            Look::Sum { fingerprint, cells } => {
                all["fingerprint"] = (*fingerprint).into();
                all[cells_name] = cells_json(cells).into();
                all["xor"] = sum(cells).into();
            }
            _ => {}
        }
        all
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn describe_slot(slot: &Slot) -> String {
    let Slot { at, holds, is_it } = slot;
    match (holds, is_it) {
        (Some(_), true) => format!("slot {at} holds it"),
        (Some(other), false) => format!("slot {at} holds {other:#x}"),
        (None, _) => format!("slot {at} is empty"),
    }
}

/// All cells in rows, with marks below those of the key.
fn drawn(cells: &[Cell], all: &[u64]) -> String {
    const ROW: usize = 64;
    let mut out = String::new();
    // There is at most one line, so the cell's number counts all cells.
    let number = |cell: &Cell| (cell.line.unwrap_or(0) * LINE_CELLS + cell.at) as usize;
    for (row, values) in all.chunks(ROW).enumerate() {
        let digits: String = values.iter().map(|value| format!("{value:x}")).collect();
        let marks: String = (row * ROW..row * ROW + values.len())
            .map(|at| match cells.iter().any(|cell| number(cell) == at) {
                true => '^',
                false => ' ',
            })
            .collect();
        out += &line(&format!("from {}", row * ROW), &digits);
        if marks.contains('^') {
            out += &format!("{:<14} {}\n", "", marks.trim_end());
        }
    }
    out
}

/// Bits or counters of a line; [`Look::Cells`] shows at most one line.
const LINE_CELLS: u64 = 512;
