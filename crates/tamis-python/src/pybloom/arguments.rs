//! Converts Python arguments: keys, shapes, paths.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};

use crate::key;
use tamis_formats::pybloomfilter::{Hash, Key, MOST_HASHES, Shape, bits_for, hashes_for};

/// Calls `act` with the key that an object stands for.
#[inline]
pub(super) fn with_key<T>(
    item: &Bound<'_, PyAny>,
    act: impl FnOnce(Key<'_>) -> PyResult<T>,
) -> PyResult<T> {
    if let Some(utf8) = key::utf8(item) {
        return act(Key::Bytes(utf8));
    }
    if let Ok(text) = item.cast::<PyString>() {
        // Surrogates have no UTF-8: this raises the error.
        return act(Key::Bytes(text.encode_utf8()?.as_bytes()));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return act(Key::Bytes(bytes.as_bytes()));
    }
    act(Key::Hash(item.hash()? as i64))
}

/// The hash of this name.
pub(super) fn hash(name: Option<&str>) -> PyResult<Option<Hash>> {
    name.map(|name| {
        let wrong = |error| PyValueError::new_err(format!("hash: {error}"));
        name.parse().map_err(wrong)
    })
    .transpose()
}

/// The shape that the class's arguments ask for.
pub(super) fn shape(
    capacity: &Bound<'_, PyAny>,
    error_rate: &Bound<'_, PyAny>,
    hash_seeds: Option<&Bound<'_, PyAny>>,
) -> PyResult<Shape> {
    let (keys, exactly) = match capacity.cast::<PyFloat>() {
        Ok(keys) => (keys.value() as u64, keys.value()),
        Err(_) => {
            let keys: i64 = capacity.extract()?;
            (keys as u64, keys as f64)
        }
    };
    if exactly < 0.0 || exactly.is_nan() {
        return Err(PyValueError::new_err(format!(
            "capacity: expected 0 or more, got {exactly}"
        )));
    }
    let rate: f64 = error_rate.extract()?;
    if !(rate > 0.0 && rate < 1.0) {
        return Err(PyValueError::new_err(format!(
            "error_rate allowable range (0.0, 1.0) {rate:.6}"
        )));
    }
    let seeds = match hash_seeds {
        Some(seeds) if seeds.is_truthy()? => given_seeds(seeds)?,
        _ => random_seeds(capacity.py(), rate)?,
    };
    let bits = bits_for(exactly, rate, seeds.len());
    if bits >= i64::MAX as f64 {
        return Err(PyOverflowError::new_err(format!(
            "a filter of {bits:e} bits is too large"
        )));
    }
    Ok(Shape {
        capacity: keys,
        error_rate: rate,
        bits: bits as u64,
        seeds,
        hash: Hash::Murmur,
    })
}

fn given_seeds(seeds: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let mut given = Vec::new();
    for seed in seeds.try_iter()? {
        let seed = seed?;
        let number = seed.cast::<PyInt>().ok().and_then(|s| s.extract().ok());
        given.push(number.ok_or_else(|| {
            PyValueError::new_err(format!(
                "invalid hash seed '{seed}', must be >= 0 and up to 32 bits in size"
            ))
        })?);
    }
    if given.len() > MOST_HASHES {
        return Err(PyValueError::new_err(format!(
            "hash_seeds: expected at most {MOST_HASHES}, got {}",
            given.len()
        )));
    }
    Ok(given)
}

/// Drawn from Python's `random`, like the original: `random.seed` reproduces the seeds, and so the file.
fn random_seeds(py: Python<'_>, error_rate: f64) -> PyResult<Vec<u32>> {
    let hashes = hashes_for(error_rate);
    if hashes > MOST_HASHES as f64 {
        return Err(PyValueError::new_err(format!(
            "error_rate: {error_rate:e} needs {hashes} hashes, at most {MOST_HASHES} are possible"
        )));
    }
    let draw = py.import("random")?.getattr("getrandbits")?;
    (0..hashes as usize)
        .map(|_| draw.call1((32,))?.extract())
        .collect()
}

pub(super) fn data_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    // Refuses str and lists of numbers.
    let bytes = data.py().get_type::<PyBytes>();
    let view = data
        .py()
        .import("builtins")?
        .getattr("memoryview")?
        .call1((data,))
        .map_err(|_| {
            let name = data
                .get_type()
                .name()
                .map_or_else(|_| "?".into(), |n| n.to_string());
            PyTypeError::new_err(format!("data_array: expected bytes, got {name}"))
        })?;
    Ok(bytes
        .call1((view,))?
        .cast_into::<PyBytes>()?
        .as_bytes()
        .to_vec())
}

/// The path in a str, bytes or os.PathLike.
pub(super) fn path(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let encoded = name
        .py()
        .import("os")?
        .getattr("fsencode")?
        .call1((name,))?
        .cast_into::<PyBytes>()?;
    let bytes = encoded.as_bytes();
    if bytes.contains(&0) {
        return Err(PyValueError::new_err("embedded null byte"));
    }
    Ok(OsString::from_vec(bytes.to_vec()).into())
}
