//! What a build without Parquet has in its place.

use std::fs::File;
use std::io;

/// Why rows could not be read.
pub enum Failure {
    /// The file has no such column; what it has instead.
    NoColumn(String),
    /// The file could not be read.
    Read(io::Error),
}

/// An open file, of which there is none.
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

    /// A column by its name.
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

    /// The column of this name, for its filters.
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
        /// Its name, with those of the groups that it is in.
        pub path: String,
    }

    impl PlainColumn {
        /// What a filter may have hashed.
        pub fn encodings(&self, _: &[u8]) -> Option<Vec<Vec<u8>>> {
            None
        }
    }

    /// The values of a column, of which there are none.
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

        /// How many row groups there are.
        pub fn row_groups(&self) -> usize {
            match self.table {}
        }

        /// Calls a function with what a filter hashes.
        pub fn each(&self, _: usize, _: impl FnMut(&[u8])) -> Result<(), Failure> {
            match self.table {}
        }
    }
}
