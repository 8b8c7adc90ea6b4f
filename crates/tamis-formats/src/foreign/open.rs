//! Opens filters: recognises the format and unpacks gzip.

use super::{Foreign, Packed};
use crate::bytes::{Bytes, View};
use crate::detect::detect;
use crate::format::pybloomfilter::{self, Hash};
use crate::format::{poppy, redis, with_zeros};
use crate::{Error, Format};
use std::io::Read as _;

/// What is known about bytes before they are opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint<'h> {
    /// Their format.
    pub format: Option<Format>,
    /// The name of the filter, if there may be several: the key in an RDB file,
    /// the column in a Parquet or ORC file.
    pub name: Option<&'h [u8]>,
    /// The hash of a pybloomfilter file, if the file doesn't say it.
    pub hash: Option<Hash>,
    /// The most bytes that a packed file may unpack to: 256 MiB by default.
    pub most_unpacked: Option<u64>,
}

/// The most bytes that a packed file may unpack to without a hint.
const MOST_UNPACKED: u64 = 256 << 20;

impl From<Format> for Hint<'_> {
    fn from(format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::default()
        }
    }
}

/// Opens a file. Recognises its format unless the hint names it. Gzipped files
/// and pybloomfilter's text are unpacked, others are queried in place.
///
/// ```
/// use tamis_formats::{Create, Error, Format, Hint};
/// let file = tamis_formats::create(Create::Dcso, 1_000, 0.01)?.to_bytes();
/// assert_eq!(tamis_formats::open(&file, Hint::default())?.format(), Format::Dcso);
/// assert!(matches!(tamis_formats::open(b"no filter", Hint::default()), Err(Error::Unknown)));
/// # Ok::<(), Error>(())
/// ```
pub fn open<'a, 'h>(
    bytes: impl Into<Bytes<'a>>,
    hint: impl Into<Hint<'h>>,
) -> Result<Foreign<'a>, Error> {
    let (bytes, hint) = (bytes.into(), hint.into());
    let most = hint.most_unpacked.unwrap_or(MOST_UNPACKED);
    if matches!(hint.format, None | Some(Format::Pybloomfilter))
        && let Some(file) = pybloomfilter::from_base64(bytes.view(), most)
    {
        let mut opened = open_unpacked(file?.into(), hint)?;
        opened.packed = Packed::Text;
        return Ok(opened);
    }
    if !bytes.starts_with(&GZIP) {
        return open_unpacked(bytes, hint);
    }
    match unpack(&bytes.view().read(0..bytes.len()), most) {
        // Unpacks only once, because some gzip files unpack to themselves.
        Ok(file) => {
            let mut opened = open_unpacked(file.into(), hint)?;
            opened.packed = Packed::Gzip;
            Ok(opened)
        }
        // Bits may happen to begin like gzip.
        Err(error) => open_unpacked(bytes, hint).map_err(|other| match other {
            Error::Unknown | Error::Corrupt { .. } => error,
            other => other,
        }),
    }
}

/// [`open`] for owned bytes, which the filter uses without copying.
///
/// ```
/// use tamis_formats::{Create, Format};
/// let file = tamis_formats::create(Create::Dcso, 1_000, 0.01)?.to_bytes();
/// let filter = tamis_formats::open_owned(file, Format::Dcso)?;
/// assert_eq!(filter.format(), Format::Dcso);
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn open_owned<'h>(
    bytes: Vec<u8>,
    hint: impl Into<Hint<'h>>,
) -> Result<Foreign<'static>, Error> {
    open(bytes, hint)
}

/// Whether a file may have a known format, judging by its first and last bytes
/// and its length. Lets callers skip reading other files. `start` and `end` are
/// 64 KiB each, or the whole file.
///
/// ```
/// let file = tamis_formats::create(tamis_formats::Create::guava(), 10_000_000, 0.01)?.to_bytes();
/// let (start, end) = (&file[..1 << 16], &file[file.len() - (1 << 16)..]);
/// assert!(tamis_formats::may_be(start, end, file.len() as u64));
/// assert!(!tamis_formats::may_be(start, end, file.len() as u64 - 1));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn may_be(start: &[u8], end: &[u8], len: u64) -> bool {
    // Only these need the bytes in between.
    if start.starts_with(&GZIP)
        || pybloomfilter::is_like_text(start.into())
        || redis::is_like(start.into())
        || poppy::is_like(start)
    {
        return true;
    }
    // Zeros take no memory until they are touched, and here they aren't.
    let zeros = len.saturating_sub(start.len() as u64);
    let Ok(mut file) = with_zeros(start, zeros) else {
        return false;
    };
    let end = &end[end.len().saturating_sub(file.len())..];
    let at = file.len() - end.len();
    file[at..].copy_from_slice(end);
    let fits =
        |format: Format, file: View<'_>| format.about().is_like_json(file) || format.fits(file);
    !detect(file[..].into(), fits).is_empty()
}

/// The start of gzip.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// Unpacks gzip, unless the content is plain text or more than `most` bytes: a
/// log of many gigabytes shouldn't be unpacked just because it might be a
/// filter.
fn unpack(bytes: &[u8], most: u64) -> Result<Vec<u8>, Error> {
    const BEGINNING: u64 = 64 << 10;
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    let unpacking = |error: std::io::Error| Error::Gzip {
        reason: error.to_string(),
    };
    let mut file = Vec::new();
    let mut inside = flate2::read::MultiGzDecoder::new(bytes);
    let beginning = (&mut inside).take(BEGINNING).read_to_end(&mut file);
    beginning.map_err(unpacking)?;
    let is_json = file.first() == Some(&b'{');
    if file.len() as u64 == BEGINNING && !is_json && file.iter().all(is_text) {
        return Err(Error::Unknown);
    }
    // The last bytes give the unpacked length modulo 4 GiB.
    let said = bytes
        .last_chunk()
        .map_or(0, |said| u64::from(u32::from_le_bytes(*said)));
    if said <= most {
        // Limits a forged number to what gzip can contain.
        let room = said
            .min(1100 * bytes.len() as u64)
            .saturating_sub(file.len() as u64);
        // If there is too little memory, less may still be enough.
        let _ = file.try_reserve_exact(room as usize + 1);
        let left = (most + 1).saturating_sub(file.len() as u64);
        (&mut inside)
            .take(left)
            .read_to_end(&mut file)
            .map_err(unpacking)?;
    }
    if said.max(file.len() as u64) > most {
        return Err(Error::Unpacked { most });
    }
    Ok(file)
}

/// The error for a file that certainly has a format but can't be opened.
fn refused(file: View<'_>) -> Option<Error> {
    let like = Format::ALL.iter().map(|format| format.about());
    let mut like = like.filter(|about| about.is_like_json(file));
    like.find_map(|about| {
        (about.read)(file, None)
            .err()
            .filter(|error| matches!(error, Error::Unable { .. }))
    })
}

fn open_unpacked<'a>(bytes: Bytes<'a>, hint: Hint<'_>) -> Result<Foreign<'a>, Error> {
    let file = bytes.view();
    let format = match hint.format {
        Some(format) => format,
        // The value says which of two formats it is, and there may be several
        // values.
        None if redis::is_like(file) => {
            let (format, opened) = redis::read(Format::RedisBloom, file, hint.name)?;
            return Ok(Foreign::new(format, bytes, opened));
        }
        None => match detect(file, Format::fits)[..] {
            [] => return Err(refused(file).unwrap_or(Error::Unknown)),
            [format] => format,
            ref fits => {
                return Err(Error::Ambiguous {
                    fits: fits.to_vec(),
                });
            }
        },
    };
    let opened = match (format, hint.hash) {
        (_, None) => (format.about().read)(file, hint.name)?,
        (Format::Pybloomfilter, asked) => pybloomfilter::read(file, asked)?,
        (format, Some(_)) => {
            return Err(Error::Unable {
                format,
                what: "have another hash",
                instead: "only pybloomfilter files leave it open",
            });
        }
    };
    Ok(Foreign::new(format, bytes, opened))
}
