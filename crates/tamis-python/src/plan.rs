//! `tamis.plan`: the cost of a filter before it is created.

use crate::argument;
use crate::error::{Failure, Result};
use crate::options::{self, Count, Need, Textbook};
use crate::when;
use pyo3::prelude::*;
use tamis::{Kind, Plan as LibraryPlan};

/// What a filter would cost: the answer of `plan`.
#[pyclass(frozen, module = "tamis", name = "Plan")]
pub(crate) struct Plan(LibraryPlan);

#[pymethods]
impl Plan {
    /// The kind that serves.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    /// The number of keys.
    #[getter]
    fn n(&self) -> u64 {
        self.0.keys()
    }

    /// The rate of false "yes" with so many keys.
    #[getter]
    fn p(&self) -> f64 {
        self.0.rate()
    }

    /// The size in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The size in bits, divided by the number of keys.
    #[getter]
    fn bits_per_key(&self) -> f64 {
        self.0.bits_per_key()
    }

    /// How many bits a key sets, of the kinds that set bits.
    #[getter]
    fn hashes(&self) -> u32 {
        self.0.hashes()
    }

    /// The rate that the same filter would have with ``n`` keys.
    #[pyo3(signature = (n, /))]
    fn p_at(&self, #[pyo3(from_py_with = argument::n)] n: Count) -> f64 {
        self.0.rate_at(n.0)
    }

    fn __repr__(&self) -> String {
        format!(
            "<tamis.Plan {} for {} keys at p={:.3e}: {} bytes, {:.2} bits a key>",
            self.kind(),
            self.n(),
            self.p(),
            self.bytes(),
            self.bits_per_key()
        )
    }
}

/// What a filter would cost. Give two of ``n`` (keys), ``p`` (rate of false
/// "yes") and ``size`` (bytes); the third follows. Say what else you need:
/// ``delete``, ``grow``, ``finished`` for a list that `build` makes, or a kind.
/// With ``kind="bloom"`` the numbers may be given: ``bits`` (or ``size``) and ``hashes``. A `Window`
/// is planned with its own arguments: ``within``, ``quiet`` or ``last``, and ``generations``.
///
/// >>> import tamis
/// >>> tamis.plan(1_000_000, 0.01)
/// <tamis.Plan blocked for 1000000 keys at p=9.998e-3: 1241728 bytes, 9.93 bits a key>
/// >>> tamis.plan(1_000_000, size=2_000_000).p < 0.001
/// True
/// >>> tamis.plan(1_000_000, 0.01, delete=True).kind
/// 'cuckoo'
/// >>> tamis.plan(1_000_000, 0.01, within="24h").kind
/// 'window'
/// >>> tamis.plan(kind="bloom", bits=16, hashes=3)
/// <tamis.Plan bloom for 4 keys at p=1.650e-1: 64 bytes, 4.00 bits a key>
#[pyfunction]
#[pyo3(signature = (n=None, p=None, *, size=None, bits=None, hashes=None, kind=None, delete=false, grow=false, finished=false, within=None, quiet=None, last=None, generations=8))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
pub(crate) fn plan(
    #[pyo3(from_py_with = argument::n)] n: Option<Count>,
    #[pyo3(from_py_with = argument::p)] p: Option<f64>,
    #[pyo3(from_py_with = argument::size)] size: Option<Count>,
    #[pyo3(from_py_with = argument::bits)] bits: Option<Count>,
    #[pyo3(from_py_with = argument::hashes)] hashes: Option<u32>,
    #[pyo3(from_py_with = argument::kind)] kind: Option<String>,
    #[pyo3(from_py_with = argument::delete)] delete: bool,
    #[pyo3(from_py_with = argument::grow)] grow: bool,
    #[pyo3(from_py_with = argument::finished)] finished: bool,
    within: Option<&Bound<'_, PyAny>>,
    quiet: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::last)] last: Option<Count>,
    #[pyo3(from_py_with = argument::generations)] generations: u32,
) -> Result<Plan> {
    let need = Need {
        delete,
        grow,
        finished,
        ..Need::default()
    };
    if let Some(window) = when::window(within, quiet, last.map(|last| last.0), generations)? {
        let others = [
            delete,
            grow,
            finished,
            size.is_some(),
            bits.is_some(),
            hashes.is_some(),
        ];
        if others.contains(&true) || kind.is_some_and(|kind| kind != Kind::Window.name()) {
            return Err(Failure::parameter(
                "within, quiet, last: expected n and p beside them, got something else; a window \
                 is a kind of its own",
            ));
        }
        let plan = options::plan_window(&window, n.map(|n| n.0), p.unwrap_or(0.01))?;
        return Ok(Plan(plan));
    }
    let textbook = Textbook { bits, hashes };
    let given = |kind| match (n, p, size) {
        (Some(_), Some(_), Some(_)) => Err(Failure::parameter(
            "n, p, size: expected two of them, got three; the third follows",
        )),
        (Some(n), p, None) => Ok(LibraryPlan::for_rate(kind, n.0, p.unwrap_or(0.01))?),
        (Some(n), None, Some(size)) => Ok(LibraryPlan::for_size(kind, n.0, size.0)?),
        (None, Some(p), Some(size)) => Ok(LibraryPlan::for_rate_in_size(kind, p, size.0)?),
        (None, ..) => Err(Failure::parameter(
            "n: expected how many keys, got nothing (or give both p and size)",
        )),
    };
    let plan = need.plan(kind.as_deref(), |kind| {
        let plan = textbook.plan(kind, n.map(|n| n.0), p, size)?;
        plan.map_or_else(|| given(kind), Ok)
    })?;
    Ok(Plan(plan))
}
