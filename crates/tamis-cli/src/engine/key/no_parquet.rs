//! What a build without Parquet has in its place.

use std::fs::File;
use std::io;

pub(crate) enum Failure {
    #[expect(dead_code, reason = "nothing is looked for")]
    NoColumn(String),
    Read(io::Error),
}

pub(crate) fn for_each_row(
    _: File,
    _: &[String],
    _: impl FnMut(u64, &[&[u8]]) -> bool,
) -> Result<(), Failure> {
    Err(unsupported())
}

fn unsupported() -> Failure {
    let cause = "this build of tamis reads no Parquet";
    Failure::Read(io::Error::new(io::ErrorKind::Unsupported, cause))
}

pub(crate) mod plain {
    use super::{Failure, unsupported};
    use std::fs::File;

    pub(crate) struct Column {
        pub(crate) number: usize,
        pub(crate) path: String,
    }

    impl Column {
        pub(crate) fn encodings(&self, _: &[u8]) -> Option<Vec<Vec<u8>>> {
            None
        }
    }

    pub(crate) fn columns(_: File, _: &[String]) -> Result<Vec<Column>, Failure> {
        Err(unsupported())
    }

    pub(crate) struct Values {
        pub(crate) column: Column,
    }

    impl Values {
        pub(crate) fn open(_: File, _: &str) -> Result<Self, Failure> {
            Err(unsupported())
        }

        pub(crate) fn row_groups(&self) -> usize {
            0
        }

        pub(crate) fn each(&self, _: usize, _: impl FnMut(&[u8])) -> Result<(), Failure> {
            Err(unsupported())
        }
    }
}
