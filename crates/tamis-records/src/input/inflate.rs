//! Gzip data, and places inside it where unpacking can start.
//!
//! Deflate refers back to the last 32 KiB of text, and its blocks begin at any bit. With both, unpacking can start at
//! the end of a block, as zlib's `zran` shows. `flate2` reveals neither, so this uses the library below it.

use libz_rs_sys as z;
use std::ffi::{CStr, c_int};
use std::io::{self, BufRead, Read};

/// How far back deflate refers.
pub(super) const WINDOW: usize = 32 << 10;
/// The length of a member's trailer: its checksum and its length.
const TRAILER: usize = 8;

/// Unpacks one member.
pub(super) struct GzipDecoder<R> {
    source: R,
    inflater: Inflater,
    stage: Stage,
    /// An error to report after the text before it.
    failed: Option<io::Error>,
}

#[derive(Clone, Copy)]
enum Stage {
    Inside,
    /// Before a trailer. After starting inside a member, there is nothing to compare it with.
    Trailer,
    Ended,
}

/// The beginning of a block.
pub(super) struct BlockStart {
    /// How many bits taken from the source belong to the block.
    pub(super) bits_ahead: u64,
    /// The text before it, as far back as the block may refer.
    pub(super) window: Vec<u8>,
}

impl<R: BufRead> GzipDecoder<R> {
    /// For a source that begins with a member.
    pub(super) fn new(source: R) -> io::Result<Self> {
        Ok(Self {
            source,
            inflater: Inflater::new(Wrapping::Gzip)?,
            stage: Stage::Inside,
            failed: None,
        })
    }

    /// For a source that begins with the byte in which a block begins, at this bit.
    pub(super) fn enter(mut source: R, bit: u8, window: &[u8]) -> io::Result<Self> {
        let mut inflater = Inflater::new(Wrapping::Nothing)?;
        if bit > 0 {
            let mut byte = [0];
            source.read_exact(&mut byte)?;
            inflater.prime(8 - bit, byte[0] >> bit)?;
        }
        inflater.set_window(window)?;
        Ok(Self {
            source,
            inflater,
            stage: Stage::Inside,
            failed: None,
        })
    }

    pub(super) fn source(&self) -> &R {
        &self.source
    }

    pub(super) fn into_inner(self) -> R {
        self.source
    }

    /// Reads some bytes, up to the end of a block. At that end, also returns the start of the next block.
    pub(super) fn read_to_block(
        &mut self,
        into: &mut [u8],
    ) -> io::Result<(usize, Option<BlockStart>)> {
        let made = self.read_until(into, Stop::Block)?;
        let start = match (self.stage, self.inflater.bits_ahead_of_block()) {
            (Stage::Inside, Some(bits_ahead)) if self.failed.is_none() => Some(BlockStart {
                bits_ahead,
                window: self.inflater.window(),
            }),
            _ => None,
        };
        Ok((made, start))
    }

    fn read_until(&mut self, into: &mut [u8], stop: Stop) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.stage {
                Stage::Inside => {}
                Stage::Trailer => {
                    self.source.read_exact(&mut [0; TRAILER])?;
                    self.stage = Stage::Ended;
                    return Ok(0);
                }
                Stage::Ended => return Ok(0),
            }
            let input = match self.source.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                input => input?,
            };
            let is_end = input.is_empty();
            let step = self.inflater.inflate(input, into, stop);
            self.source.consume(step.taken);
            let end = match step.result {
                Ok(Status::Ended) => {
                    self.stage = match self.inflater.wrapping {
                        Wrapping::Gzip => Stage::Ended,
                        Wrapping::Nothing => Stage::Trailer,
                    };
                    Ok(())
                }
                Ok(Status::Inside) if step.made > 0 || step.taken > 0 => Ok(()),
                Ok(Status::Inside) if is_end => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Status::Inside) => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "no text and no end",
                )),
                Err(error) => Err(error),
            };
            match end {
                Ok(()) if step.made > 0 => return Ok(step.made),
                Ok(()) => {}
                Err(error) if step.made > 0 => {
                    self.failed = Some(error);
                    return Ok(step.made);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: BufRead> Read for GzipDecoder<R> {
    /// Returns all text before the damage, then the error.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_until(into, Stop::Never)
    }
}

/// The format around deflated data.
#[derive(Clone, Copy)]
enum Wrapping {
    /// The header and trailer of gzip, which are read and verified.
    Gzip,
    Nothing,
}

#[derive(Clone, Copy)]
enum Stop {
    Never,
    /// At the ends of blocks.
    Block,
}

enum Status {
    Inside,
    Ended,
}

struct Step {
    taken: usize,
    made: usize,
    result: io::Result<Status>,
}

/// The library's state.
struct Inflater {
    stream: z::z_stream,
    wrapping: Wrapping,
}

// SAFETY: nothing else refers to the stream's memory, and its pointers into input and output are only used during a
// call.
unsafe impl Send for Inflater {}

impl Inflater {
    fn new(wrapping: Wrapping) -> io::Result<Self> {
        let mut stream = z::z_stream::default();
        let window_bits = match wrapping {
            Wrapping::Gzip => 16 + 15,
            Wrapping::Nothing => -15,
        };
        let size = size_of::<z::z_stream>() as c_int;
        // SAFETY: the stream has the library's defaults, and the version and the size are those of this build.
        let code =
            unsafe { z::inflateInit2_(&raw mut stream, window_bits, z::zlibVersion(), size) };
        match code {
            z::Z_OK => Ok(Self { stream, wrapping }),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    fn inflate(&mut self, input: &[u8], into: &mut [u8], stop: Stop) -> Step {
        let flush = match stop {
            Stop::Never => z::Z_NO_FLUSH,
            Stop::Block => z::Z_BLOCK,
        };
        let [given, room] =
            [input.len(), into.len()].map(|len| u32::try_from(len).unwrap_or(u32::MAX));
        let stream = &mut self.stream;
        (stream.next_in, stream.avail_in) = (input.as_ptr(), given);
        (stream.next_out, stream.avail_out) = (into.as_mut_ptr(), room);
        // SAFETY: `new` made the stream; both buffers outlive the call and have at least these lengths.
        let code = unsafe { z::inflate(stream, flush) };
        let taken = (given - stream.avail_in) as usize;
        let made = (room - stream.avail_out) as usize;
        let result = match code {
            z::Z_OK | z::Z_BUF_ERROR => Ok(Status::Inside),
            z::Z_STREAM_END => Ok(Status::Ended),
            z::Z_MEM_ERROR => Err(io::ErrorKind::OutOfMemory.into()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, self.complaint())),
        };
        Step {
            taken,
            made,
            result,
        }
    }

    fn complaint(&self) -> String {
        if self.stream.msg.is_null() {
            return "no deflated data".to_owned();
        }
        // SAFETY: the library's messages are constants that end with a zero.
        let text = unsafe { CStr::from_ptr(self.stream.msg) };
        text.to_string_lossy().into_owned()
    }

    /// At the start of a block that isn't after the last one: how many of its bits were already taken.
    fn bits_ahead_of_block(&self) -> Option<u64> {
        const AT_BLOCK: c_int = 128;
        const LAST: c_int = 64;
        let told = self.stream.data_type;
        (told & AT_BLOCK != 0 && told & LAST == 0).then_some((told & (LAST - 1)) as u64)
    }

    /// The latest text, up to a window's length.
    fn window(&self) -> Vec<u8> {
        let mut window = vec![0; WINDOW];
        let mut len = 0;
        // SAFETY: `new` made the stream; it never holds more than `WINDOW` bytes.
        unsafe {
            z::inflateGetDictionary(&raw const self.stream, window.as_mut_ptr(), &raw mut len)
        };
        window.truncate(len as usize);
        window
    }

    fn set_window(&mut self, window: &[u8]) -> io::Result<()> {
        let len = window.len().min(WINDOW) as u32;
        // SAFETY: `new` made the stream, and the window has at least that length.
        let code = unsafe { z::inflateSetDictionary(&raw mut self.stream, window.as_ptr(), len) };
        taken(code)
    }

    fn prime(&mut self, bits: u8, value: u8) -> io::Result<()> {
        // SAFETY: `new` made the stream.
        let code = unsafe { z::inflatePrime(&raw mut self.stream, bits.into(), value.into()) };
        taken(code)
    }
}

fn taken(code: c_int) -> io::Result<()> {
    match code {
        z::Z_OK => Ok(()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: `new` made the stream, and it is not used again.
        unsafe { z::inflateEnd(&raw mut self.stream) };
    }
}
