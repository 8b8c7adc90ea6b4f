//! Values of Parquet columns as the bytes that their filters hash: the plain encoding, without a length.

use super::{Failure, Format, Table, general};
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::Result;
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;

/// Rows read at once.
const BATCH: usize = 4096;

/// A column: its number in a row group, and how its values become bytes.
pub struct PlainColumn {
    /// Its number in the table, from 0.
    pub number: usize,
    /// Its name, with those of its groups.
    pub path: String,
    physical: Physical,
    length: usize,
    format: Option<Format>,
}

impl PlainColumn {
    fn of(number: usize, described: &ColumnDescriptor) -> Self {
        Self {
            number,
            path: described.path().string(),
            physical: described.physical_type(),
            length: usize::try_from(described.type_length()).unwrap_or(0),
            // In a list, each element has a value, and these are in its filter.
            format: Format::of_value(described).ok(),
        }
    }

    /// The bytes that a filter may have hashed for a value with this text; `None` if that isn't known.
    pub fn encodings(&self, text: &[u8]) -> Option<Vec<Vec<u8>>> {
        let format = self.format?;
        let words = || std::str::from_utf8(text).ok();
        let one = |bytes: &[u8]| Some(vec![bytes.to_vec()]);
        match self.physical {
            Physical::BOOLEAN | Physical::INT96 => None,
            Physical::INT32 => {
                let value = format.parse(words()?)?;
                match format {
                    Format::Unsigned => one(&u32::try_from(value).ok()?.to_le_bytes()),
                    _ => one(&i32::try_from(value).ok()?.to_le_bytes()),
                }
            }
            Physical::INT64 => {
                let value = format.parse(words()?)?;
                match format {
                    Format::Unsigned => one(&u64::try_from(value).ok()?.to_le_bytes()),
                    _ => one(&i64::try_from(value).ok()?.to_le_bytes()),
                }
            }
            // The two zeros are equal, and NaN has many encodings.
            Physical::FLOAT => match words()?.parse::<f32>().ok()? {
                value if value.is_nan() => None,
                0.0 => Some(vec![
                    0f32.to_le_bytes().into(),
                    (-0f32).to_le_bytes().into(),
                ]),
                value => one(&value.to_le_bytes()),
            },
            Physical::DOUBLE => match words()?.parse::<f64>().ok()? {
                value if value.is_nan() => None,
                0.0 => Some(vec![
                    0f64.to_le_bytes().into(),
                    (-0f64).to_le_bytes().into(),
                ]),
                value => one(&value.to_le_bytes()),
            },
            Physical::BYTE_ARRAY => match format {
                Format::Plain => one(text),
                // A number may have any number of leading bytes.
                _ => None,
            },
            Physical::FIXED_LEN_BYTE_ARRAY => match format {
                Format::Plain if text.len() == self.length => one(text),
                Format::Decimal { .. } => {
                    let value = format.parse(words()?)?.to_be_bytes();
                    let (sign, value) = value.split_at(16usize.checked_sub(self.length)?);
                    let fill = if value.first()? & 0x80 == 0 { 0 } else { 0xFF };
                    sign.iter()
                        .all(|byte| *byte == fill)
                        .then(|| vec![value.to_vec()])
                }
                Format::Uuid => {
                    let digits: String = words()?.chars().filter(|c| *c != '-').collect();
                    let value = u128::from_str_radix(&digits, 16).ok()?;
                    (digits.len() == 32).then(|| vec![value.to_be_bytes().into()])
                }
                _ => None,
            },
        }
    }
}

impl Format {
    /// Parses a number in this format.
    fn parse(self, text: &str) -> Option<i128> {
        match self {
            Self::Plain | Self::Unsigned => text.parse().ok(),
            Self::Decimal { scale } => fixed(text, scale),
            Self::Date => days(text),
            Self::Time(per_second) => time(text, per_second),
            Self::Timestamp(per_second) => {
                let (day, clock) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
                Some(days(day)? * 86_400 * per_second + time(clock, per_second)?)
            }
            Self::Uuid | Self::Half => None,
        }
    }
}

/// Parses a decimal number, in units of its last of `scale` digits.
fn fixed(text: &str, scale: usize) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (kept, cut) = fraction.split_at_checked(scale).unwrap_or((fraction, ""));
    let all = format!("{whole}{kept:0<scale$}");
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let none = whole.is_empty() && fraction.is_empty();
    if none || !is_digits(&all) || cut.bytes().any(|byte| byte != b'0') {
        return None;
    }
    Some(sign * all.parse::<i128>().ok()?)
}

/// Parses `2026-11-15` as days since 1970.
fn days(text: &str) -> Option<i128> {
    let (text, before) = match text.strip_prefix('-') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let mut parts = text.split('-').map(|part| {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            part.parse::<i128>().ok()
        } else {
            None
        }
    });
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || before || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that start in March have their leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    Some(
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
            - 719_468,
    )
}

/// Parses `05:03:40.25` in this many units per second.
fn time(text: &str, per_second: i128) -> Option<i128> {
    let mut parts = text.splitn(3, ':');
    let small = |text: Option<&str>| match text?.as_bytes() {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i128::from((tens - b'0') * 10 + ones - b'0'))
        }
        _ => None,
    };
    let (hours, minutes) = (small(parts.next())?, small(parts.next())?);
    let seconds = fixed(parts.next()?, per_second.ilog10() as usize)?;
    (seconds >= 0).then(|| (hours * 3600 + minutes * 60) * per_second + seconds)
}

impl Table {
    /// The column with this name, for its filters.
    pub fn plain(&self, name: &str) -> Result<PlainColumn, Failure> {
        let number = self.find(name)?;
        Ok(PlainColumn::of(number, &self.schema.column(number)))
    }
}

/// The values of a column, row group by row group; can be read repeatedly.
pub struct Values {
    table: Table,
    /// The column.
    pub column: PlainColumn,
}

impl Values {
    /// Opens a file for the values of the column with this name.
    pub fn open(file: File, name: &str) -> Result<Self, Failure> {
        let table = Table::open(file)?;
        let column = table.plain(name)?;
        if let Physical::BOOLEAN | Physical::INT96 = column.physical {
            let what = format!(
                "column '{name}' is {}, for which there are no filters",
                column.physical
            );
            return Err(general(&what).into());
        }
        Ok(Self { table, column })
    }

    /// The number of row groups.
    pub fn row_groups(&self) -> usize {
        self.table.reader.num_row_groups()
    }

    /// Calls `each` with the bytes that a filter hashes for every value of a row group; for a zero, with both zeros.
    pub fn each(&self, group: usize, mut each: impl FnMut(&[u8])) -> Result<(), Failure> {
        let group = self.table.reader.get_row_group(group)?;
        match group.get_column_reader(self.column.number)? {
            ColumnReader::Int32ColumnReader(r) => read(r, |v| each(&v.to_le_bytes())),
            ColumnReader::Int64ColumnReader(r) => read(r, |v| each(&v.to_le_bytes())),
            ColumnReader::FloatColumnReader(r) => read(r, |v| {
                each(&v.to_le_bytes());
                if *v == 0.0 {
                    each(&(-v).to_le_bytes());
                } else if v.is_nan() {
                    each(&f32::NAN.to_le_bytes());
                }
            }),
            ColumnReader::DoubleColumnReader(r) => read(r, |v| {
                each(&v.to_le_bytes());
                if *v == 0.0 {
                    each(&(-v).to_le_bytes());
                } else if v.is_nan() {
                    each(&f64::NAN.to_le_bytes());
                }
            }),
            ColumnReader::ByteArrayColumnReader(r) => read(r, |v: &ByteArray| each(v.data())),
            ColumnReader::FixedLenByteArrayColumnReader(r) => read(r, |v| each(v.data())),
            ColumnReader::BoolColumnReader(_) | ColumnReader::Int96ColumnReader(_) => {
                Err(general("no filters for such values"))
            }
        }?;
        Ok(())
    }
}

fn read<T: DataType>(mut reader: ColumnReaderImpl<T>, mut each: impl FnMut(&T::T)) -> Result<()> {
    let (mut levels, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        levels.clear();
        repeated.clear();
        values.clear();
        let (rows, ..) =
            reader.read_records(BATCH, Some(&mut levels), Some(&mut repeated), &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        values.iter().for_each(&mut each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::parquet as texts;

    /// Every number that is written as text is parsed as the same number.
    #[test]
    fn what_reads_so_is_that_number() {
        let formats = [
            Format::Plain,
            Format::Date,
            Format::Decimal { scale: 0 },
            Format::Decimal { scale: 3 },
            Format::Timestamp(1_000),
            Format::Timestamp(1_000_000),
            Format::Timestamp(1_000_000_000),
        ];
        let numbers = [
            0i128,
            1,
            -1,
            7,
            59,
            -60,
            999,
            1000,
            11_016,
            86_399_999,
            -123_456_789,
            951_868_799_250,
        ];
        for format in formats {
            for number in numbers {
                let mut text = Vec::new();
                format.integer(number, &mut text).unwrap();
                let text = String::from_utf8(text).unwrap();
                let got = format.parse(&text);
                // There is no agreed text for years before 0 and after 9999.
                if !matches!(format, Format::Date) || (-700_000..2_900_000).contains(&number) {
                    assert_eq!(got, Some(number), "{text}");
                }
            }
        }
        let mut text = Vec::new();
        texts::time(19_420_250, 1_000, &mut text);
        assert_eq!(
            time(&String::from_utf8(text).unwrap(), 1_000),
            Some(19_420_250)
        );
        for text in [
            "",
            "x",
            "1-",
            "2026-13-01",
            "2026-01-32",
            "2026-1x-01",
            "1.2.3",
            "--1",
            "-",
        ] {
            assert_eq!(fixed(text, 2), None, "{text}");
            assert_eq!(days(text), None, "{text}");
        }
        assert_eq!(fixed("1.230", 2), Some(123));
        assert_eq!(fixed("1.234", 2), None);
        assert_eq!(fixed(".5", 2), Some(50));
        assert_eq!(time("24:00:00+01", 1_000), None);
    }
}
