//! Arguments of Python calls. Errors begin with the argument's name.

use crate::error::Failure;
use crate::key;
use crate::options::Count;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyInt, PyString};
use std::path::PathBuf;
use tamis_redis::{Location, hide_passwords};

/// A type of argument.
pub(crate) trait Argument: Sized {
    const EXPECTED: &'static str;

    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! argument {
    ($type:ty, $expected:literal) => {
        impl Argument for $type {
            const EXPECTED: &'static str = $expected;

            fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
                object.extract()
            }
        }
    };
}
argument!(f64, "a number");
argument!(bool, "True or False");
argument!(String, "a str");
argument!(PyBackedStr, "a str");
argument!(PathBuf, "a path, as str or os.PathLike");
argument!(u32, "an integer from 0 to 2**32-1");
argument!(usize, "an integer from 0 on");

impl Argument for Count {
    const EXPECTED: &'static str = "an integer from 0 to 2**64-1";

    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        object.extract().map(Self)
    }
}

impl<T: Argument> Argument for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            Ok(None)
        } else {
            T::of(object).map(Some)
        }
    }
}

/// Extracts the argument of this name.
pub(crate) fn named<T: Argument>(name: &str, object: &Bound<'_, PyAny>) -> PyResult<T> {
    if T::EXPECTED == PathBuf::EXPECTED {
        refuse_location(name, object)?;
    }
    T::of(object).map_err(|_| {
        // A number or text that is out of range, rather than another type.
        let is_value = object.is_instance_of::<PyInt>()
            || (object.is_instance_of::<PyString>() && T::EXPECTED == PathBuf::EXPECTED);
        let text = match object.repr() {
            Ok(text) if is_value => format!("{name}: expected {}, got {text}", T::EXPECTED),
            _ => format!(
                "{name}: expected {}, got {}",
                T::EXPECTED,
                key::type_name(object)
            ),
        };
        if is_value && T::EXPECTED != bool::EXPECTED && T::EXPECTED != String::EXPECTED {
            Failure::parameter(text).into()
        } else {
            Failure::argument(text).into()
        }
    })
}

/// A system error would repeat an address with its password.
fn refuse_location(name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let path: Option<PathBuf> = object.extract().ok();
    match path.as_ref().and_then(|path| path.to_str()) {
        Some(text) if Location::looks_like(text) => Err(Failure::parameter(format!(
            "{name}: expected a path, got {}; tamis.connect() opens a filter in Redis",
            hide_passwords(text)
        ))
        .into()),
        _ => Ok(()),
    }
}

macro_rules! arguments {
    ($($name:ident)*) => {
        $(
            pub(crate) fn $name<T: Argument>(object: &Bound<'_, PyAny>) -> PyResult<T> {
                named(stringify!($name), object)
            }
        )*
    };
}
arguments! {
    allow_replica_writes allow_stale bits both delete finished format generations grow hash hashes ignore_case key_file keyed keys kind last location
    max_lag memory module n name overwrite p path remember retry_for seconds seed size temp_dir
    text timeout tls_ca tls_cert tls_key url values verify wait_replicas
}

/// A number of threads; 0 means one per core.
pub(crate) fn threads(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    object.extract().map_err(|_| {
        let expected = "threads: expected how many threads to use, or 0 for one a core, got";
        if object.is_instance_of::<PyInt>() {
            Failure::parameter(format!("{expected} {object}")).into()
        } else {
            Failure::argument(format!("{expected} {}", key::type_name(object))).into()
        }
    })
}
