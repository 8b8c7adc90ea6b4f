//! Headers and bodies of filters, in memory and in files.

pub(crate) mod body;
pub(crate) mod bytes;
pub(crate) mod check;
#[cfg(feature = "files")]
pub(crate) mod disk;
#[cfg(feature = "files")]
pub(crate) mod lock;
#[cfg(feature = "files")]
pub(crate) mod mode;
#[cfg(feature = "files")]
pub(crate) mod replace;
#[cfg(feature = "files")]
pub(crate) mod shared;
pub(crate) mod stamp;
#[cfg(feature = "files")]
pub(crate) mod temporary;
#[cfg(feature = "files")]
pub(crate) mod update;
pub(crate) mod words;
