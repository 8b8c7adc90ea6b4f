//! Replaces Parquet support in builds without it.

use std::fs::File;
use std::io;

/// Why rows could not be read.
pub enum Failure {
    /// The file has no such column; says what it has instead.
    NoColumn(String),
    /// The file could not be read.
    Read(io::Error),
}

/// An open file; can't exist.
pub enum Table {}

fn unsupported() -> Failure {
    let cause = "this build reads no Parquet";
    Failure::Read(io::Error::new(io::ErrorKind::Unsupported, cause))
}

impl Table {
    /// Fails.
    pub fn open(_: File) -> Result<Self, Failure> {
        Err(unsupported())
    }

    /// Finds a column by its name.
    pub fn find(&self, _: &str) -> Result<usize, Failure> {
        match *self {}
    }

    /// Calls a function for every row.
    pub fn for_each_row(
        &self,
        _: &[usize],
        _: impl FnMut(u64, &[Option<&[u8]>]) -> bool,
    ) -> Result<(), Failure> {
        match *self {}
    }

    /// The column with this name, for its filters.
    pub fn plain(&self, _: &str) -> Result<plain::PlainColumn, Failure> {
        match *self {}
    }
}

/// Values as the bytes that filters hash.
pub mod plain {
    use super::{Failure, Table, unsupported};
    use std::fs::File;

    /// A column.
    pub struct PlainColumn {
        /// Its number in the table, from 0.
        pub number: usize,
        /// Its name, with those of its groups.
        pub path: String,
    }

    impl PlainColumn {
        /// The bytes that a filter may have hashed.
        pub fn encodings(&self, _: &[u8]) -> Option<Vec<Vec<u8>>> {
            None
        }
    }

    /// The values of a column; can't exist.
    pub struct Values {
        table: Table,
        /// The column.
        pub column: PlainColumn,
    }

    impl Values {
        /// Fails.
        pub fn open(_: File, _: &str) -> Result<Self, Failure> {
            Err(unsupported())
        }

        /// The number of row groups.
        pub fn row_groups(&self) -> usize {
            match self.table {}
        }

        /// Calls a function with the bytes that a filter hashes.
        pub fn each(&self, _: usize, _: impl FnMut(&[u8])) -> Result<(), Failure> {
            match self.table {}
        }
    }
}
