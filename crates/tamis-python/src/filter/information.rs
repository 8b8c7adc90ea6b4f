//! Descriptions of a filter: as a dict, a line of text, or HTML.

use super::Filter;
use super::backing::{Backing, ask};
use crate::error::Result;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tamis::internals::raw::{Cell, Look, Slot, sum};
use tamis::{Hasher, KeyCount, Kind};

/// Facts that take reading the whole filter.
struct Facts {
    kind: Kind,
    capacity: u64,
    rate: f64,
    keys: KeyCount,
    undercounted: Option<u64>,
    rate_now: f64,
    bytes: u64,
}

impl Facts {
    fn of(slf: &Bound<'_, Filter>) -> Result<Self> {
        Filter::read(slf, |state| {
            ask!(state, f => Self {
                kind: f.kind(),
                capacity: f.capacity(),
                rate: f.rate(),
                keys: f.keys(),
                undercounted: f.undercounted(),
                rate_now: f.rate_now(),
                bytes: f.bytes(),
            })
        })
    }

    fn best_count(&self) -> u64 {
        self.undercounted.unwrap_or(self.keys.get())
    }

    fn fill(&self) -> f64 {
        self.best_count() as f64 / self.capacity.max(1) as f64
    }
}

pub(crate) fn as_dict<'py>(slf: &Bound<'py, Filter>) -> Result<Bound<'py, PyDict>> {
    let this = slf.get();
    let facts = Facts::of(slf)?;
    let info = PyDict::new(slf.py());
    info.set_item("kind", facts.kind.name())?;
    info.set_item("capacity", facts.capacity)?;
    info.set_item("p", facts.rate)?;
    info.set_item("keys", facts.keys.get())?;
    info.set_item("keys_counted", matches!(facts.keys, KeyCount::Counted(_)))?;
    info.set_item("keys_estimated", facts.undercounted)?;
    info.set_item("fill", facts.fill())?;
    info.set_item("p_now", facts.rate_now)?;
    info.set_item("bytes", facts.bytes)?;
    info.set_item("hash", this.hasher.name())?;
    info.set_item(
        "seed",
        match this.hasher {
            Hasher::Fast { seed, .. } => Some(seed),
            _ => None,
        },
    )?;
    info.set_item("ignore_case", this.ignore_case())?;
    info.set_item("url", this.url())?;
    info.set_item("values", this.hasher.rule().values())?;
    info.set_item("path", this.path())?;
    Ok(info)
}

pub(crate) fn explain<'py>(
    slf: &Bound<'py, Filter>,
    key: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyDict>> {
    let (py, hash) = (slf.py(), slf.get().hash(key)?);
    let (kind, why, rate_now) = Filter::read(
        slf,
        move |state| ask!(state, f => (f.kind(), f.explain(hash), f.rate_now())),
    )?;
    let looks = PyList::empty(py);
    for look in &why.looks {
        looks.append(look_dict(py, kind, look)?)?;
    }
    let told = PyDict::new(py);
    told.set_item("kind", kind.name())?;
    told.set_item("hash", format!("{:032x}", hash.as_u128()))?;
    told.set_item("answer", if why.is_maybe() { "maybe" } else { "no" })?;
    told.set_item("p_now", rate_now)?;
    told.set_item("looks", looks)?;
    Ok(told)
}

/// The fields of `tamis explain --json`.
fn look_dict<'py>(py: Python<'py>, kind: Kind, look: &Look) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("maybe", look.is_maybe())?;
    let (name, line) = match kind {
        Kind::Counting => ("counters", "line"),
        Kind::Fuse => ("slots", "shard"),
        Kind::Ribbon | Kind::Cascade => ("rows", "line"),
        _ => ("bits", "line"),
    };
    let set_cells = |cells: &[Cell]| -> PyResult<()> {
        let list = PyList::empty(py);
        for cell in cells {
            let each = PyDict::new(py);
            each.set_item("at", cell.at)?;
            each.set_item("value", cell.value)?;
            if let Some(number) = cell.line {
                each.set_item(line, number)?;
            }
            list.append(each)?;
        }
        told.set_item(name, list)
    };
    match look {
        Look::Cells { cells, all } => {
            set_cells(cells)?;
            if !all.is_empty() {
                told.set_item("all", all.clone())?;
            }
        }
        Look::Sum { fingerprint, cells } => {
            set_cells(cells)?;
            told.set_item("fingerprint", fingerprint)?;
            told.set_item("xor", sum(cells))?;
        }
        Look::Slots {
            fingerprint,
            places,
        } => {
            told.set_item("fingerprint", fingerprint)?;
            let held = |place: &Vec<Slot>| place.iter().map(|slot| (slot.at, slot.holds)).collect();
            let places: Vec<Vec<(u64, Option<u64>)>> = places.iter().map(held).collect();
            told.set_item("places", places)?;
        }
        _ => {}
    }
    Ok(told)
}

pub(crate) fn as_text(slf: &Bound<'_, Filter>) -> PyResult<String> {
    let (py, this) = (slf.py(), slf.get());
    let class = slf.get_type().fully_qualified_name()?;
    let facts = this.state.with(
        py,
        |state| ask!(state, f => (f.kind(), f.counted(), f.capacity(), f.rate())),
    );
    let Ok((kind, counted, capacity, rate)) = facts else {
        return Ok(format!("<{class}, closed>"));
    };
    let keys = counted.map_or("an unknown number".into(), |keys| keys.to_string());
    let place = match &this.path {
        Some(path) => format!(" in {}", path.display()),
        None => String::new(),
    };
    Ok(format!(
        "<{class} {kind}, {keys} of {capacity} keys, p={rate}{place}>"
    ))
}

/// For notebooks: two bars, for the fill and for the rate relative to the promise.
pub(crate) fn as_html(slf: &Bound<'_, Filter>) -> Result<String> {
    let this = slf.get();
    let title = escaped(&as_text(slf)?);
    if this
        .state
        .with(slf.py(), |state| matches!(state, Backing::Closed))
    {
        return Ok(format!("<div><code>{title}</code></div>"));
    }
    let facts = Facts::of(slf)?;
    let about = match (facts.keys, facts.undercounted) {
        (KeyCount::Counted(_), None) => "",
        _ => "about ",
    };
    let rows = [
        (
            "keys",
            facts.fill(),
            format!("{about}{} of {}", facts.best_count(), facts.capacity),
        ),
        (
            "false yes now",
            facts.rate_now / facts.rate,
            format!("{:.3e} of {:.3e}", facts.rate_now, facts.rate),
        ),
    ];
    let rows = rows.map(|(name, share, text)| {
        // Beyond its end, the bar is full and has another colour.
        let (width, colour) = match share {
            share if share > 1.0 => (100.0, "#c0392b"),
            share => (share.max(0.0) * 100.0, "#2e86c1"),
        };
        format!(
            "<tr><td>{name}</td><td><svg width=\"120\" height=\"10\" role=\"img\">\
             <rect width=\"120\" height=\"10\" fill=\"#ddd\"/>\
             <rect width=\"{:.1}\" height=\"10\" fill=\"{colour}\"/></svg></td><td>{text}</td></tr>",
            width * 1.2
        )
    });
    Ok(format!(
        "<div><code>{title}</code><table>{}</table></div>",
        rows.concat()
    ))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
