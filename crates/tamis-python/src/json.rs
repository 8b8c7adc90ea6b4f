//! `tamis.Json`: a JSON value as a key, or as part of one, with the same bytes as in the command.

use crate::encoded::Encoded;
use crate::error::{Failure, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

/// The prefix of a value that isn't text.
const NOT_TEXT: u8 = 0xFF;
/// Replaces the length of an absent value.
pub(crate) const ABSENT: [u8; 8] = [0xFF; 8];

/// A value of JSON as a key: what ``tamis build -k jsonl:`` makes of it, which for
/// numbers, true, false, null, lists and objects is another key than the Python
/// object is. Equal values are one key, however they are written: 1, 1.0 and 10e-1.
///
/// >>> import tamis
/// >>> seen = tamis.Filter(1000, 1e-9)
/// >>> seen.add(tamis.Json(3)), seen.add(tamis.Json(3.0)), seen.add(3)
/// (True, False, True)
/// >>> seen.add(tamis.Json("text")), "text" in seen
/// (True, True)
///
/// Where several pointers make a key, it is a tuple of them, in which ``Json()``
/// stands for a member that a record doesn't have. A number with more digits than
/// a float has is a Decimal: ``json.loads(line, parse_float=Decimal)``.
#[pyclass(frozen, module = "tamis", name = "Json")]
pub(crate) struct Json {
    value: Value,
    /// For `repr`.
    given: Option<Py<PyAny>>,
}

enum Value {
    Text(Py<PyBytes>),
    /// Includes the prefix.
    Other(Vec<u8>),
    Absent,
}

impl Json {
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.value, Value::Absent)
    }

    /// The key bytes of the value.
    pub(crate) fn key<'py>(&self, py: Python<'py>) -> Result<Encoded<'py>> {
        match &self.value {
            Value::Text(bytes) => Ok(Encoded::Text(bytes.bind(py).clone())),
            Value::Other(bytes) => Ok(Encoded::Exact(bytes.clone())),
            Value::Absent => Err(Failure::no_key(
                "key: expected a value, got Json(), a member that is not there; it has a place only \
                 in a tuple",
            )),
        }
    }
}

#[pymethods]
impl Json {
    #[new]
    #[pyo3(signature = (*value))]
    fn new(value: &Bound<'_, PyTuple>) -> Result<Self> {
        let given = match value.len() {
            0 => {
                return Ok(Self {
                    value: Value::Absent,
                    given: None,
                });
            }
            1 => value.get_item(0)?,
            more => {
                return Err(Failure::argument(format!(
                    "value: expected one, or none for a member that is not there, got {more}"
                )));
            }
        };
        let canonical = given.py().import("tamis._json")?;
        let text = canonical.call_method1("text", (&given,))?;
        let bytes = text.cast_into::<PyBytes>().map_err(PyErr::from)?;
        let value = if given.is_instance_of::<PyString>() {
            Value::Text(bytes.unbind())
        } else {
            Value::Other([&[NOT_TEXT], bytes.as_bytes()].concat())
        };
        Ok(Self {
            value,
            given: Some(given.unbind()),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match &self.given {
            Some(given) => format!("tamis.Json({})", given.bind(py).repr()?),
            None => "tamis.Json()".into(),
        })
    }
}
