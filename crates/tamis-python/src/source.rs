//! What holds many keys: which of its sides they are read from.

use crate::capsule::Arrays;
use crate::error::Failure;
use crate::key;
use crate::numpy;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// Many keys, in the shape in which they are read.
pub(crate) enum Source<'py> {
    /// Columns in place.
    Arrow(Arrays),
    /// A numpy array, and which of its rows are masked.
    Array {
        array: Bound<'py, PyAny>,
        masked: Option<Vec<bool>>,
    },
    /// A list of a column's Python objects, and which of them stand for nothing.
    Objects {
        list: Bound<'py, PyAny>,
        nulls: Option<Vec<bool>>,
    },
    Iterable,
}

impl<'py> Source<'py> {
    pub(crate) fn of(keys: &Bound<'py, PyAny>) -> Result<Self, Failure> {
        let library = key::library(keys)?;
        if library == "polars" && is_polars_objects(keys)? {
            let nulls = keys.call_method0("is_null")?.call_method0("to_list")?;
            return Ok(Self::Objects {
                list: keys.call_method0("to_list")?,
                nulls: Some(nulls.extract()?),
            });
        }
        match Arrays::of(keys) {
            Ok(Some(arrays)) => return Ok(Self::Arrow(arrays)),
            Ok(None) => {}
            // pandas has Arrow only together with pyarrow, and not for columns
            // of several types.
            Err(Failure::Python(error))
                if library == "pandas" && error.is_instance_of::<PyException>(keys.py()) => {}
            Err(failure) => return Err(failure),
        }
        if library == "pandas" && keys.hasattr("isna")? {
            return Self::of_pandas(keys);
        }
        Ok(match numpy::as_array(keys)? {
            Some(array) => Self::Array {
                masked: numpy::masked(&array)?,
                array,
            },
            None => Self::Iterable,
        })
    }

    fn of_pandas(keys: &Bound<'py, PyAny>) -> Result<Self, Failure> {
        let array = keys.call_method0("to_numpy")?;
        numpy::require_one_dimension(&array)?;
        let nulls = keys.call_method0("isna")?;
        // Of a series, a series.
        let nulls = numpy::as_array(&nulls)?.unwrap_or(nulls);
        Ok(match numpy::some_true(&nulls)? {
            None => Self::Array {
                array,
                masked: None,
            },
            nulls => Self::Objects {
                list: keys.call_method0("tolist")?,
                nulls,
            },
        })
    }
}

/// As Arrow, these would be the addresses of the objects.
fn is_polars_objects(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    match keys.getattr_opt("dtype")? {
        Some(dtype) => dtype.eq(keys.py().import("polars")?.getattr("Object")?),
        None => Ok(false),
    }
}
