//! What a build without Parquet has in its place.

use std::fs::File;
use std::io;

pub enum Failure {
    #[expect(dead_code, reason = "nothing is looked for")]
    NoColumn(String),
    Read(io::Error),
}

pub fn for_each_row(
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

pub mod plain {
    use super::{Failure, unsupported};
    use std::fs::File;

    pub struct PlainColumn {
        pub number: usize,
        pub path: String,
    }

    impl PlainColumn {
        pub fn encodings(&self, _: &[u8]) -> Option<Vec<Vec<u8>>> {
            None
        }
    }

    pub fn columns(_: File, _: &[String]) -> Result<Vec<PlainColumn>, Failure> {
        Err(unsupported())
    }

    pub struct Values {
        pub column: PlainColumn,
    }

    impl Values {
        pub fn open(_: File, _: &str) -> Result<Self, Failure> {
            Err(unsupported())
        }

        pub fn row_groups(&self) -> usize {
            0
        }

        pub fn each(&self, _: usize, _: impl FnMut(&[u8])) -> Result<(), Failure> {
            Err(unsupported())
        }
    }
}
