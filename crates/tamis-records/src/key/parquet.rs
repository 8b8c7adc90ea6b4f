//! Values of Parquet columns as text, the same text as in a CSV of the table, so that one query finds both.

pub mod plain;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescPtr};
use std::fs::File;
use std::io::{self, Write as _};

/// Rows read at once.
const BATCH: usize = 1024;

/// Why rows could not be read.
pub enum Failure {
    /// The file has no such column; says what it has instead.
    NoColumn(String),
    /// The file could not be read.
    Read(io::Error),
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Self::Read(io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// An open file.
pub struct Table {
    reader: SerializedFileReader<File>,
    schema: SchemaDescPtr,
}

impl Table {
    /// Reads the footer.
    pub fn open(file: File) -> Result<Self, Failure> {
        let reader = SerializedFileReader::new(file)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        Ok(Self { reader, schema })
    }

    /// Finds a column by its name; in a group, the name is `group.column`.
    pub fn find(&self, name: &str) -> Result<usize, Failure> {
        let paths: Vec<_> = self
            .schema
            .columns()
            .iter()
            .map(|column| column.path().string())
            .collect();
        if let Some(column) = paths.iter().position(|path| path == name) {
            return Ok(column);
        }
        let is_inside =
            |path: &&String| path.strip_prefix(name).is_some_and(|p| p.starts_with('.'));
        // The name exists, but isn't a single value.
        if let Some(inside) = paths.iter().find(is_inside) {
            let what = format!("column '{name}' is a group or list, with '{inside}' in it");
            return Err(general(&what).into());
        }
        let known = paths.join(", ");
        Err(Failure::NoColumn(format!(
            "no column '{name}', the file has: {known}"
        )))
    }

    /// Calls `each(row, values)` for every row, counting from 1, until it says stop. A null counts as missing.
    pub fn for_each_row(
        &self,
        columns: &[usize],
        mut each: impl FnMut(u64, &[Option<&[u8]>]) -> bool,
    ) -> Result<(), Failure> {
        let mut texts: Vec<Texts> = columns.iter().map(|_| Texts::default()).collect();
        let mut row = 0;
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group)?;
            let mut readers = Vec::new();
            for &column in columns {
                let described = self.schema.column(column);
                let format = Format::of(&described)?;
                let reader = group.get_column_reader(column)?;
                readers.push((reader, format, described.max_def_level()));
            }
            loop {
                for ((reader, format, present), texts) in readers.iter_mut().zip(&mut texts) {
                    texts.fill(reader, *format, *present)?;
                }
                let rows = texts[0].values.len();
                if texts.iter().any(|texts| texts.values.len() != rows) {
                    return Err(general("columns have different numbers of rows").into());
                }
                if rows == 0 {
                    break;
                }
                let mut values = Vec::with_capacity(texts.len());
                for at in 0..rows {
                    row += 1;
                    values.clear();
                    values.extend(texts.iter().map(|texts| texts.value(at)));
                    if !each(row, &values) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

fn general(message: &str) -> ParquetError {
    ParquetError::General(message.to_owned())
}

/// The values of one column in a batch of rows, concatenated.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// The position of each row's value; `None` for a null.
    values: Vec<Option<(usize, usize)>>,
}

impl Texts {
    fn value(&self, row: usize) -> Option<&[u8]> {
        self.values[row].map(|(start, end)| &self.bytes[start..end])
    }

    /// Reads the next batch; it is empty at the end. A row has a value if its definition level is `present`.
    fn fill(&mut self, reader: &mut ColumnReader, format: Format, present: i16) -> Result<()> {
        self.bytes.clear();
        self.values.clear();
        match reader {
            ColumnReader::BoolColumnReader(r) => self.read(r, present, |v, out| {
                out.extend_from_slice(if *v { b"true" } else { b"false" });
                Ok(())
            }),
            ColumnReader::Int32ColumnReader(r) => self.read(r, present, |v, out| match format {
                Format::Unsigned => append(out, v.cast_unsigned()),
                _ => format.integer(i128::from(*v), out),
            }),
            ColumnReader::Int64ColumnReader(r) => self.read(r, present, |v, out| match format {
                Format::Unsigned => append(out, v.cast_unsigned()),
                _ => format.integer(i128::from(*v), out),
            }),
            ColumnReader::Int96ColumnReader(r) => self.read(r, present, |v, out| {
                // Old timestamps: nanoseconds of a Julian day.
                const EPOCH: i128 = 2_440_588;
                let &[low, high, day] = v.data() else {
                    return Err(general("an INT96 without value"));
                };
                let nanos = i128::from(u64::from(high) << 32 | u64::from(low));
                let day = i128::from(day) - EPOCH;
                let nanos = day * 86_400_000_000_000 + nanos;
                Format::Timestamp(1_000_000_000).integer(nanos, out)
            }),
            ColumnReader::FloatColumnReader(r) => {
                self.read(r, present, |v, out| append(out, format_args!("{v:?}")))
            }
            ColumnReader::DoubleColumnReader(r) => {
                self.read(r, present, |v, out| append(out, format_args!("{v:?}")))
            }
            ColumnReader::ByteArrayColumnReader(r) => {
                self.read(r, present, |v, out| format.bytes(v.data(), out))
            }
            ColumnReader::FixedLenByteArrayColumnReader(r) => {
                self.read(r, present, |v, out| format.bytes(v.data(), out))
            }
        }
    }

    fn read<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        present: i16,
        text: impl Fn(&T::T, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        while self.values.len() < BATCH {
            levels.clear();
            values.clear();
            let wanted = BATCH - self.values.len();
            let (rows, ..) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
            if rows == 0 {
                break;
            }
            let mut left = values.iter();
            for row in 0..rows {
                if present > 0 && levels.get(row) != Some(&present) {
                    self.values.push(None);
                    continue;
                }
                let value = left.next().ok_or_else(|| general("a value is missing"))?;
                let start = self.bytes.len();
                text(value, &mut self.bytes)?;
                self.values.push(Some((start, self.bytes.len())));
            }
        }
        Ok(())
    }
}

/// The text format of a value.
#[derive(Clone, Copy, Debug)]
enum Format {
    Plain,
    Unsigned,
    Decimal {
        scale: usize,
    },
    Date,
    /// Units per second.
    Time(i128),
    Timestamp(i128),
    Uuid,
    Half,
}

impl Format {
    fn of(column: &ColumnDescriptor) -> Result<Self> {
        if column.max_rep_level() > 0 {
            return Err(general(&format!(
                "column '{}' is a list: a row has no single value",
                column.path().string()
            )));
        }
        Self::of_value(column)
    }

    /// The same for one value, even if rows may have several.
    fn of_value(column: &ColumnDescriptor) -> Result<Self> {
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        let decimal = |scale: i32| match usize::try_from(scale) {
            Ok(scale @ 0..=76) => Ok(Self::Decimal { scale }),
            _ => Err(general(&format!(
                "a decimal with {scale} digits after the point"
            ))),
        };
        Ok(match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Integer(int)), _) if !int.is_signed => Self::Unsigned,
            (Some(LogicalType::Decimal(d)), _) => decimal(d.scale)?,
            (Some(LogicalType::Date), _) => Self::Date,
            (Some(LogicalType::Time(t)), _) => Self::Time(per_second(&t.unit)),
            (Some(LogicalType::Timestamp(t)), _) => Self::Timestamp(per_second(&t.unit)),
            (Some(LogicalType::Uuid), _) => Self::Uuid,
            (Some(LogicalType::Float16), _) => Self::Half,
            (
                None,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Self::Unsigned,
            (None, ConvertedType::DECIMAL) => decimal(column.type_scale())?,
            (None, ConvertedType::DATE) => Self::Date,
            (None, ConvertedType::TIME_MILLIS) => Self::Time(1_000),
            (None, ConvertedType::TIME_MICROS) => Self::Time(1_000_000),
            (None, ConvertedType::TIMESTAMP_MILLIS) => Self::Timestamp(1_000),
            (None, ConvertedType::TIMESTAMP_MICROS) => Self::Timestamp(1_000_000),
            _ => Self::Plain,
        })
    }

    fn integer(self, value: i128, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Decimal { scale } => decimal(value, scale, out),
            Self::Date => date(value, out),
            Self::Time(per_second) => time(value, per_second, out),
            Self::Timestamp(per_second) => {
                let day = 86_400 * per_second;
                date(value.div_euclid(day), out);
                out.push(b' ');
                time(value.rem_euclid(day), per_second, out);
            }
            _ => return append(out, value),
        }
        Ok(())
    }

    fn bytes(self, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match (self, value.len()) {
            (Self::Decimal { scale }, length @ 0..=16) => {
                let negative = value.first().is_some_and(|byte| byte & 0x80 != 0);
                let mut wide = [if negative { 0xFF } else { 0 }; 16];
                wide[16 - length..].copy_from_slice(value);
                decimal(i128::from_be_bytes(wide), scale, out);
            }
            (Self::Decimal { .. }, length) => {
                return Err(general(&format!("a decimal of {length} bytes")));
            }
            (Self::Uuid, 16) => {
                for (at, byte) in value.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    append(out, format_args!("{byte:02x}"))?;
                }
            }
            (Self::Half, 2) => {
                let value = half(u16::from_le_bytes([value[0], value[1]]));
                return append(out, format_args!("{value:?}"));
            }
            _ => out.extend_from_slice(value),
        }
        Ok(())
    }
}

fn append(out: &mut Vec<u8>, value: impl std::fmt::Display) -> Result<()> {
    Ok(write!(out, "{value}")?)
}

fn decimal(value: i128, scale: usize, out: &mut Vec<u8>) {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

/// Formats days since 1970 as `2026-11-15`.
fn date(days: i128, out: &mut Vec<u8>) {
    let (year, month, day) = tamis::internals::calendar::date(days);
    let text = format!("{year:04}-{month:02}-{day:02}");
    out.extend_from_slice(text.as_bytes());
}

/// Formats a time as `05:03:40.25`, without trailing zeros in the fraction.
fn time(value: i128, per_second: i128, out: &mut Vec<u8>) {
    let (second, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let text = format!("{hour:02}:{minute:02}:{:02}", second % 60);
    out.extend_from_slice(text.as_bytes());
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        let fraction = format!(".{fraction:0digits$}");
        out.extend_from_slice(fraction.trim_end_matches('0').as_bytes());
    }
}

/// Decodes a 16-bit float: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (bits >> 10 & 31, f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction / 1024.0 * 2_f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f32.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_read_as_in_csv() {
        assert_eq!(text(|out| date(0, out)), "1970-01-01");
        assert_eq!(text(|out| date(-1, out)), "1969-12-31");
        assert_eq!(text(|out| date(11_016, out)), "2000-02-29");
        assert_eq!(text(|out| date(20_772, out)), "2026-11-15");
        assert_eq!(text(|out| decimal(-5, 2, out)), "-0.05");
        assert_eq!(text(|out| decimal(12_345, 2, out)), "123.45");
        assert_eq!(text(|out| decimal(12_345, 0, out)), "12345");
        let stamp = |value| {
            text(|out| {
                Format::Timestamp(1_000).integer(value, out).unwrap();
            })
        };
        assert_eq!(stamp(0), "1970-01-01 00:00:00");
        assert_eq!(stamp(-1), "1969-12-31 23:59:59.999");
        assert_eq!(stamp(951_868_799_250), "2000-02-29 23:59:59.25");
        assert_eq!(half(0x3C00), 1.0);
        assert_eq!(half(0xC100), -2.5);
    }
}
