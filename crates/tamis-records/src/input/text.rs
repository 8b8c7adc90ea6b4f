//! The text of a file, from its beginning or from any offset.

use super::entrance::Entrance;
use super::members::Members;
use super::notes::Spacing;
use super::{Compression, Counted, InputError, Left, first_bytes, xz};
use crate::formats::{self, FileKind};
use crate::progress::Progress;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Compressed data isn't read to its end if it unpacks to more than this, and to more than `MOST_TIMES` its size.
const MOST_BYTES: u64 = 256 << 20;
const MOST_TIMES: u64 = 2_000;

/// The encoding of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or any other bytes.
    Bytes,
    /// UTF-8, after a byte order mark that isn't text.
    Utf8Mark,
    /// UTF-16 little-endian, after a byte order mark.
    Utf16Le,
    /// UTF-16 big-endian, after a byte order mark.
    Utf16Be,
}

impl Encoding {
    /// Recognises the marks that ripgrep recognises.
    fn of(head: &[u8]) -> Self {
        match head {
            [0xEF, 0xBB, 0xBF, ..] => Self::Utf8Mark,
            [0xFF, 0xFE, ..] => Self::Utf16Le,
            [0xFE, 0xFF, ..] => Self::Utf16Be,
            _ => Self::Bytes,
        }
    }

    /// Length of the mark, if the text after it is the file's bytes.
    fn mark(self) -> u64 {
        match self {
            Self::Utf8Mark => 3,
            Self::Bytes | Self::Utf16Le | Self::Utf16Be => 0,
        }
    }

    fn is_wide(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }
}

/// How to turn a file's bytes into text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextKind {
    /// The compression of the file.
    pub compression: Compression,
    /// The encoding of the unpacked bytes.
    pub encoding: Encoding,
}

impl TextKind {
    /// Plain text.
    pub const PLAIN: Self = Self {
        compression: Compression::None,
        encoding: Encoding::Bytes,
    };

    /// Whether it is compressed.
    pub fn is_packed(self) -> bool {
        self.compression != Compression::None
    }

    /// The byte to store.
    pub fn to_byte(self) -> u8 {
        let compression = match self.compression {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Zstd => 2,
            Compression::Bzip2 => 3,
            Compression::Xz => 4,
        };
        let encoding = match self.encoding {
            Encoding::Bytes => 0,
            Encoding::Utf8Mark => 1,
            Encoding::Utf16Le => 2,
            Encoding::Utf16Be => 3,
        };
        compression | encoding << 4
    }

    /// Decodes a byte from [`to_byte`](Self::to_byte); `None` for others.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let compression = match byte & 15 {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Zstd,
            3 => Compression::Bzip2,
            4 => Compression::Xz,
            _ => return None,
        };
        let encoding = match byte >> 4 {
            0 => Encoding::Bytes,
            1 => Encoding::Utf8Mark,
            2 => Encoding::Utf16Le,
            3 => Encoding::Utf16Be,
            _ => return None,
        };
        Some(Self {
            compression,
            encoding,
        })
    }

    /// Whether the text at an offset is in the file as it is, at [`offset_in_file`](Self::offset_in_file).
    pub fn is_plain(self) -> bool {
        self.compression == Compression::None && !self.encoding.is_wide()
    }

    /// The position in a plain file of the text at this offset.
    pub fn offset_in_file(self, text: u64) -> u64 {
        self.encoding.mark() + text
    }
}

/// The text of a file: unpacked, without a byte order mark, UTF-16 as UTF-8.
///
/// Errors describe the problem with the file. A file that is [not read](InputError::is_not_read) unpacks to far more
/// than anyone could have intended.
pub struct TextReader {
    kind: TextKind,
    file_kind: Option<FileKind>,
    text: Text,
}

enum Text {
    Narrow(Bytes),
    Wide(Box<Decoded>),
}

impl TextReader {
    /// Opens a file. Counts bytes read in `progress`.
    pub fn open(path: &Path, progress: &Arc<Progress>) -> Result<Self, InputError> {
        let open = || Self::new(File::open(path)?, progress);
        open().map_err(|cause| InputError {
            name: path.display().to_string(),
            cause,
        })
    }

    /// Reads an open file from its beginning; it must be seekable.
    pub fn new(file: File, progress: &Arc<Progress>) -> io::Result<Self> {
        Self::with_spacing(file, Spacing::default(), progress)
    }

    pub(crate) fn with_spacing(
        mut file: File,
        spacing: Spacing,
        progress: &Arc<Progress>,
    ) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Left::Folder.into());
        }
        let first = first_bytes(&mut file, Compression::undecided)?;
        let compression = Compression::of(&first);
        file.rewind()?;
        let blocks = match compression {
            Compression::Xz => xz::blocks(&mut file)?,
            _ => Vec::new(),
        };
        let source = Counted {
            source: file,
            progress: Arc::clone(progress),
        };
        let unpacked = match compression {
            Compression::None => Unpacked::Plain(source),
            _ => {
                let members = Members::new(compression, Vec::new(), source)?;
                Unpacked::Packed(Box::new(members.noting(spacing, blocks)))
            }
        };
        let mut bytes = Bytes::new(compression, unpacked);
        if compression != Compression::None {
            // More than any file of this size contains, unless it was made to unpack forever.
            bytes.left = MOST_BYTES.max(metadata.len().saturating_mul(MOST_TIMES));
        }
        bytes.look_ahead();
        let encoding = Encoding::of(bytes.ahead.get_ref());
        let mut file_kind = None;
        if !encoding.is_wide() {
            file_kind = formats::not_text(bytes.ahead.get_ref());
            bytes.ahead.set_position(encoding.mark());
        }
        let kind = TextKind {
            compression,
            encoding,
        };
        Ok(Self {
            kind,
            file_kind,
            text: Text::new(encoding, bytes),
        })
    }

    /// How its text is made from bytes.
    pub fn kind(&self) -> TextKind {
        self.kind
    }

    /// The kind of the file, if its text can't be read as words and lines. `None` for UTF-16 with a mark, which can be
    /// read.
    pub fn file_kind(&self) -> Option<FileKind> {
        self.file_kind
    }

    /// The entrances passed since the last call, in order. Their text has been returned or comes next.
    pub fn take_entrances(&mut self) -> Vec<Entrance> {
        let Text::Narrow(Bytes {
            unpacked: Unpacked::Packed(members),
            ..
        }) = &mut self.text
        else {
            return Vec::new();
        };
        let mut entrances = members.take_entrances();
        for entrance in &mut entrances {
            entrance.text -= self.kind.encoding.mark();
        }
        entrances
    }

    /// Reads until the buffer is full or the text ends.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    /// Skips this many bytes of text, or fewer at the end.
    pub fn skip(&mut self, bytes: u64) -> io::Result<()> {
        const STEP: u64 = 64 << 10;
        let mut buffer = vec![0; bytes.min(STEP) as usize];
        let mut left = bytes;
        while left > 0 {
            let step = left.min(STEP) as usize;
            match self.fill(&mut buffer[..step])? {
                0 => break,
                count => left -= count as u64,
            }
        }
        Ok(())
    }
}

/// UTF-16 decoded to UTF-8.
struct Decoded {
    decoder: DecodeReaderBytes<Bytes, Vec<u8>>,
    /// Decoded bytes that haven't been read yet.
    ahead: Cursor<Vec<u8>>,
}

/// The least buffer for the decoder: without room for a whole character, it loses the end of the last one.
const DECODED_AT_LEAST: usize = 64;

impl Read for Decoded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let count @ 1.. = self.ahead.read(into)? {
            return Ok(count);
        }
        if into.len() >= DECODED_AT_LEAST {
            return self.decoder.read(into);
        }
        let mut some = vec![0; DECODED_AT_LEAST];
        let count = self.decoder.read(&mut some)?;
        some.truncate(count);
        self.ahead = Cursor::new(some);
        self.ahead.read(into)
    }
}

impl Read for TextReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.text {
            Text::Narrow(bytes) => bytes.read(into),
            Text::Wide(decoded) => decoded.read(into),
        }
    }
}

impl Text {
    fn new(encoding: Encoding, bytes: Bytes) -> Self {
        if !encoding.is_wide() {
            return Self::Narrow(bytes);
        }
        // By its mark, like ripgrep.
        let mut decoder = DecodeReaderBytesBuilder::new();
        decoder.bom_override(true).strip_bom(true);
        Self::Wide(Box::new(Decoded {
            decoder: decoder.build(bytes),
            ahead: Cursor::default(),
        }))
    }
}

/// The text of a file from an offset to its end. Seeks in a plain file; otherwise unpacks from the last entrance before
/// the offset, or from the beginning, and skips the text up to it. Past the end, there is no text.
///
/// `kind` and `entrance` are those of a [`TextReader`] on the same bytes. See [`Entrance`] for an example.
pub fn text_from(
    mut file: File,
    kind: TextKind,
    entrance: Option<&Entrance>,
    offset: u64,
) -> io::Result<TextReader> {
    let entrance =
        entrance.filter(|_| kind.compression != Compression::None && !kind.encoding.is_wide());
    // Where to start reading, and how much text to skip.
    let (at, skip) = match entrance {
        Some(entrance) => {
            let skip = offset.checked_sub(entrance.text);
            let skip = skip.ok_or_else(|| {
                let (text, at) = (entrance.text, entrance.at);
                let what =
                    format!("the text at {offset} is before that of the entrance at {at}, {text}");
                io::Error::new(io::ErrorKind::InvalidInput, what)
            })?;
            (entrance.at, skip)
        }
        None if kind.is_plain() => (kind.offset_in_file(offset), 0),
        None => (0, offset + kind.encoding.mark()),
    };
    file.seek(SeekFrom::Start(at))?;
    let source = Counted {
        source: file,
        progress: Arc::default(),
    };
    let unpacked = match (kind.compression, entrance) {
        (Compression::None, _) => Ok(Unpacked::Plain(source)),
        (packing, Some(entrance)) => Members::enter(packing, entrance, source)
            .map(|members| Unpacked::Packed(Box::new(members))),
        (packing, None) => Members::new(packing, Vec::new(), source)
            .map(|members| Unpacked::Packed(Box::new(members))),
    };
    let unpacked = unpacked.map_err(|cause| kind.compression.explain(cause))?;
    let mut reader = TextReader {
        kind,
        file_kind: None,
        text: Text::new(kind.encoding, Bytes::new(kind.compression, unpacked)),
    };
    reader.skip(skip)?;
    Ok(reader)
}

/// Unpacked bytes.
struct Bytes {
    compression: Compression,
    unpacked: Unpacked,
    /// Bytes that were peeked at, and the error that ended peeking.
    ahead: Cursor<Vec<u8>>,
    failed: Option<io::Error>,
    /// How many more bytes are allowed.
    left: u64,
}

enum Unpacked {
    Plain(Counted<File>),
    Packed(Box<Members<Counted<File>>>),
}

impl Bytes {
    fn new(compression: Compression, unpacked: Unpacked) -> Self {
        Self {
            compression,
            unpacked,
            ahead: Cursor::default(),
            failed: None,
            left: u64::MAX,
        }
    }

    /// Peeks at enough bytes to recognise the file.
    fn look_ahead(&mut self) {
        let mut filled = 0;
        let mut ahead = vec![0; formats::HEAD];
        while filled < ahead.len() {
            match self.read(&mut ahead[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        ahead.truncate(filled);
        self.ahead = Cursor::new(ahead);
    }
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let count @ 1.. = self.ahead.read(into)? {
            return Ok(count);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let limit = into.len().min(self.compression.read_limit());
        let count = loop {
            let read = match &mut self.unpacked {
                Unpacked::Plain(source) => source.read(&mut into[..limit]),
                Unpacked::Packed(members) => members.read(&mut into[..limit]),
            };
            match read {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|cause| self.compression.explain(cause))?,
            }
        };
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => {
                self.left = 0;
                let why = format!("it becomes more than {MOST_TIMES} times as large when unpacked");
                Err(Left::NotRead(why).into())
            }
        }
    }
}
