//! From bytes to a filter: which format they are of, and what gzip hides.

use super::{Foreign, Packed};
use crate::bytes::{Bytes, View};
use crate::detect::detect;
use crate::format::pybloomfilter::{self, Hash};
use crate::format::{poppy, redis, with_zeros};
use crate::{Error, Format};
use std::io::Read as _;

/// What is known of bytes before they are opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint<'h> {
    /// Their format.
    pub format: Option<Format>,
    /// The name of the filter, where there may be several: the key in an RDB
    /// file, the column in a Parquet or ORC file.
    pub name: Option<&'h [u8]>,
    /// The hash of a pybloomfilter file, which does not say it.
    pub hash: Option<Hash>,
    /// To how many bytes a packed file may unpack: 256 MiB by default.
    pub most_unpacked: Option<u64>,
}

/// What a packed file may unpack to, unless a hint allows more.
const MOST_UNPACKED: u64 = 256 << 20;

impl From<Format> for Hint<'_> {
    fn from(format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::default()
        }
    }
}

/// Opens a file. Its format is recognised unless the hint names it. A gzipped
/// file and pybloomfilter's text are unpacked, any other is asked in place.
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
        // Only once: there is gzip that unpacks to itself.
        Ok(file) => {
            let mut opened = open_unpacked(file.into(), hint)?;
            opened.packed = Packed::Gzip;
            Ok(opened)
        }
        // Bits may begin like gzip.
        Err(error) => open_unpacked(bytes, hint).map_err(|other| match other {
            Error::Unknown | Error::Corrupt { .. } => error,
            other => other,
        }),
    }
}

/// [`open`] of bytes that become the filter's, without a copy of them.
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

/// Whether a file may be one of a known format, by its first and last bytes and
/// its length: for those who read no more of what is none. Each end has 64 KiB,
/// or all there is.
///
/// ```
/// let file = tamis_formats::create(tamis_formats::Create::guava(), 10_000_000, 0.01)?.to_bytes();
/// let (start, end) = (&file[..1 << 16], &file[file.len() - (1 << 16)..]);
/// assert!(tamis_formats::may_be(start, end, file.len() as u64));
/// assert!(!tamis_formats::may_be(start, end, file.len() as u64 - 1));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
pub fn may_be(start: &[u8], end: &[u8], len: u64) -> bool {
    // What lies in between is looked at by these alone.
    if start.starts_with(&GZIP)
        || pybloomfilter::is_like_text(start.into())
        || redis::is_like(start.into())
        || poppy::is_like(start)
    {
        return true;
    }
    // The memory of zeros is taken when it is touched, and here it is not.
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

/// How gzip begins.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What is inside of gzip, unless it is plain text or more than `most` bytes:
/// nobody means a log of many gigabytes to be unpacked because it might be a
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
    // Its last bytes say how much it is, of whole 4 GiB what is left over.
    let said = bytes
        .last_chunk()
        .map_or(0, |said| u64::from(u32::from_le_bytes(*said)));
    if said <= most {
        // A forged number takes no more than can be inside.
        let room = said
            .min(1100 * bytes.len() as u64)
            .saturating_sub(file.len() as u64);
        // What there is no memory for at once may still not be needed.
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

/// Why a file that is certainly of a format can't be asked.
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
        // Which of two formats it is stands in the value, of which there may be several.
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
