//! Containers of many keys, and how to read them.

use crate::capsule::Arrays;
use crate::encoded::{Encoded, Value};
use crate::error::{Failure, Result};
use crate::key;
use crate::numpy;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;
use tamis::KeyRule;
use tamis_python_core::arrow::{ArrowArray, Owned};
use tamis_python_core::column::{Bits, KeyColumn, Values};

/// Many keys, in the form in which they are read.
pub(crate) enum Source<'py> {
    /// Columns in place.
    Arrow(Arrays),
    /// A numpy array, which of its rows are masked, and whether its timestamps are in UTC.
    Array {
        array: Bound<'py, PyAny>,
        masked: Option<Vec<bool>>,
        utc: bool,
    },
    /// A list of a column's Python objects, some of which may be missing values.
    Objects(Bound<'py, PyAny>),
    Iterable,
}

impl<'py> Source<'py> {
    pub(crate) fn of(keys: &Bound<'py, PyAny>) -> Result<Self> {
        let library = key::library(keys)?;
        if library == "polars" && is_polars_objects(keys)? {
            return Ok(Self::Objects(keys.call_method0("to_list")?));
        }
        if library == "pandas"
            && let Some(dtype) = keys.getattr_opt("dtype")?
        {
            return Self::of_pandas(keys, &dtype);
        }
        if library == "pandas" {
            return Err(Failure::no_key(
                "keys: expected one column, got a table; pass one of its columns, e.g. \
                 table[\"url\"]",
            ));
        }
        if let Some(arrays) = Arrays::of(keys)? {
            return Ok(Self::Arrow(arrays));
        }
        Ok(match numpy::as_array(keys)? {
            Some(array) => Self::Array {
                masked: numpy::masked(&array)?,
                array,
                utc: false,
            },
            None => Self::Iterable,
        })
    }

    /// A series or an index. Only its type decides, never its objects: those are read one by one.
    fn of_pandas(keys: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>) -> Result<Self> {
        let objects = || Ok(Self::Objects(keys.call_method0("tolist")?));
        let plain = |array: Bound<'py, PyAny>, utc| Self::Array {
            array,
            masked: None,
            utc,
        };
        let py = keys.py();
        if dtype.is_instance(&py.import("numpy")?.getattr("dtype")?)? {
            if dtype.getattr("kind")?.extract::<char>()? == 'O' {
                return objects();
            }
            let array = keys.call_method0("to_numpy")?;
            warn_of_rounding(&array, dtype)?;
            return Ok(plain(array, false));
        }
        match key::type_name(dtype).rsplit('.').next() {
            Some("DatetimeTZDtype") => {
                let unit = format!("M8[{}]", dtype.getattr("unit")?);
                return Ok(plain(keys.call_method1("to_numpy", (unit,))?, true));
            }
            Some("PeriodDtype") => return objects(),
            Some("CategoricalDtype") => {
                let categories = dtype.getattr("categories")?;
                let kind: String = categories.getattr("inferred_type")?.extract()?;
                if categories.getattr("dtype")?.str()? == "object" && kind != "string" {
                    return objects();
                }
            }
            _ => {}
        }
        match Arrays::of(keys) {
            Ok(Some(arrays)) => Ok(Self::Arrow(arrays)),
            Ok(None) => objects(),
            // pandas only has Arrow with pyarrow, and not for every type.
            Err(Failure::Python(error)) if error.is_instance_of::<PyException>(py) => objects(),
            Err(failure) => Err(failure),
        }
    }
}

/// In Arrow, these would be the addresses of the objects.
fn is_polars_objects(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    match keys.getattr_opt("dtype")? {
        Some(dtype) => dtype.eq(keys.py().import("polars")?.getattr("Object")?),
        None => Ok(false),
    }
}

/// If a value is missing, pandas turns integers into floats, which are rounded above 2**53: then they aren't the same
/// keys as the integers.
fn warn_of_rounding(array: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    if dtype.str()? != "float64" || array.len()? == 0 {
        return Ok(());
    }
    let numpy = py.import("numpy")?;
    let largest = |of: &Bound<'_, PyAny>, name: &str| -> PyResult<f64> {
        // With only NaN, the result is NaN, which isn't larger.
        numpy
            .getattr(name)?
            .call_method1("reduce", (of,))?
            .extract()
    };
    let size = largest(array, "fmax")?.max(-largest(array, "fmin")?);
    if !(9_007_199_254_740_992.0..18_446_744_073_709_551_616.0).contains(&size) {
        return Ok(());
    }
    PyErr::warn(
        py,
        &py.get_type::<PyUserWarning>(),
        c"keys: the column holds numbers above 2**53 as floats. If pandas made them of integers, \
          as it does where some are missing, they are rounded, and so are other keys; use \
          dtype=\"Int64\"",
        1,
    )
}

/// Keeps a column's memory alive.
pub(crate) enum Held<'py> {
    Arrow(Arrays, Vec<Owned<ArrowArray>>),
    Array(Bound<'py, PyAny>, Option<Vec<bool>>, bool),
    Encoded(Vec<usize>, Vec<u8>, Vec<bool>),
}

impl<'py> Held<'py> {
    /// Everything in a column, ready to be read without the GIL.
    pub(crate) fn of(rule: &KeyRule, keys: &Bound<'py, PyAny>) -> Result<Self> {
        let py = keys.py();
        match Source::of(keys)? {
            Source::Arrow(mut arrays) => {
                let mut all = Vec::new();
                while let Some(array) = py.detach(|| arrays.next())? {
                    all.push(array);
                }
                Ok(Self::Arrow(arrays, all))
            }
            Source::Array { array, masked, utc } => {
                match numpy::column(&array, masked.as_deref(), utc)? {
                    Some(_) => Ok(Self::Array(array, masked, utc)),
                    None => Self::encoded(rule, &array.call_method0("tolist")?),
                }
            }
            Source::Objects(objects) => Self::encoded(rule, &objects),
            Source::Iterable => Self::encoded(rule, keys),
        }
    }

    fn encoded(rule: &KeyRule, objects: &Bound<'py, PyAny>) -> Result<Self> {
        let (mut ends, mut bytes, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for object in objects.try_iter()? {
            let object = object?;
            let value = match key::utf8(&object) {
                Some(text) if rule.values() == 1 => {
                    rule.append(text, &mut bytes);
                    None
                }
                _ => Some(key::value(rule, &object)?),
            };
            missing.push(matches!(value, Some(Value::Missing)));
            match &value {
                Some(Value::Key(Encoded::Text(text))) => {
                    rule.append(text.as_bytes(), &mut bytes);
                }
                Some(Value::Key(Encoded::Exact(exact))) => bytes.extend_from_slice(exact),
                Some(Value::Missing) | None => {}
            }
            ends.push(bytes.len());
            if ends.len().is_multiple_of(1 << 15) {
                objects.py().check_signals()?;
            }
        }
        Ok(Self::Encoded(ends, bytes, missing))
    }

    /// The parts of the column, in order.
    pub(crate) fn columns(&mut self) -> Result<Vec<KeyColumn<'_>>> {
        Ok(match self {
            Self::Arrow(arrays, all) => {
                let columns = all.iter().map(|array| arrays.column(array));
                columns.collect::<Result<_, _>>()?
            }
            Self::Array(array, masked, utc) => {
                let column = numpy::column(array, masked.as_deref(), *utc)?;
                column.into_iter().collect()
            }
            Self::Encoded(ends, bytes, missing) => vec![KeyColumn {
                len: ends.len(),
                valid: (missing.contains(&true)).then(|| Bits::unmasked(missing)),
                values: Values::Encoded(std::mem::take(ends), std::mem::take(bytes)),
            }],
        })
    }
}
