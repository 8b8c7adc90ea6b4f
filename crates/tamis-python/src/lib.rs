//! The extension module behind the Python packages `tamis` and `pybloomfilter`.

mod argument;
mod batch;
mod buffer;
mod build;
mod capsule;
mod elsewhere;
mod encoded;
mod error;
mod filter;
mod foreign;
mod foreign_keys;
mod fork;
mod guard;
mod hash_func;
mod interrupt;
mod json;
mod key;
mod key_hash;
mod lock;
mod mask;
mod method;
mod moment;
mod numpy;
mod numpy_text;
mod options;
mod plan;
mod progress;
// Uses mapped files, permissions and descriptors; like the original, not on Windows.
#[cfg(unix)]
mod pybloom;
mod redis;
mod rows;
mod source;
mod when;
mod window;

use pyo3::prelude::*;

// Everything that threads share is locked or never changes; see `lock`.
#[pymodule(gil_used = false)]
mod _tamis {
    use super::*;

    #[pymodule_export]
    use crate::build::build;
    #[pymodule_export]
    use crate::foreign::{ForeignFilter, open_foreign};
    #[pymodule_export]
    use crate::guard::Guard;
    #[pymodule_export]
    use crate::json::Json;
    #[pymodule_export]
    use crate::key_hash::KeyHash;
    #[pymodule_export]
    use crate::mask::Mask;
    #[pymodule_export]
    use crate::plan::{Plan, plan};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::pybloom::BloomFilter;
    #[pymodule_export]
    use crate::redis::{RedisFilter, connect};

    #[pymodule_export]
    use crate::window::{
        _window_add_many, _window_contains, _window_contains_many, _window_facts,
        _window_generations, _window_new, _window_remembers,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::lock::require_main_interpreter(module.py())?;
        module.add("Filter", crate::filter::class(module.py())?)?;
        module.add_class::<crate::rows::Rows>()?;
        let add = crate::method::add_at::<crate::filter::Filter>(module.py())?;
        module.add("_window_add", add)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::register(module)
    }
}
