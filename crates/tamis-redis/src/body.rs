//! Which commands ask and change a body, and what their answers mean.
//!
//! Redis numbers bits from the most significant of a byte, Tamis from the
//! least; the bytes are the same, so offsets are translated here.

use crate::chunks::{CHUNK_LINES, Chunk, MARK};
use crate::link::Request;
use redis::{Cmd, Value};
use std::ops::Range;
use tamis::{BlockedShape, CountingShape, Hash, Shape};

/// Keys whose bits one command sets: enough to share its cost, few enough not
/// to hold up other clients of the server.
const KEYS_PER_COMMAND: usize = 16;
/// Lines that are at most so many apart are read by one command: that many
/// bytes cost the server less than a command does.
const GAP_LINES: u64 = 4;
/// And no more than so many.
const RUN_LINES: u64 = 64;

/// A body of bits or counters, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    cells: Cells,
    pub(crate) chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cells {
    Bits(BlockedShape),
    Counters(CountingShape),
}

impl Cells {
    pub(crate) const fn of(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Blocked(shape) => Some(Self::Bits(shape)),
            Shape::Counting(shape) => Some(Self::Counters(shape)),
            _ => None,
        }
    }

    pub(crate) const fn lines(self) -> u64 {
        match self {
            Self::Bits(shape) => shape.lines(),
            Self::Counters(shape) => shape.lines(),
        }
    }

    pub(crate) const fn lines_per_key(self) -> u32 {
        match self {
            Self::Bits(shape) => shape.lines_per_key(),
            Self::Counters(shape) => shape.lines_per_key(),
        }
    }

    pub(crate) const fn hashes_per_line(self) -> usize {
        match self {
            Self::Bits(shape) => shape.hashes_per_line() as usize,
            Self::Counters(shape) => shape.hashes_per_line() as usize,
        }
    }

    /// Whether all marked cells of a line are taken.
    pub(crate) fn has(self, line: &Line, marks: &Line) -> bool {
        let taken = |word: u64| match self {
            Self::Bits(_) => word,
            Self::Counters(_) => word | word >> 1 | word >> 2 | word >> 3,
        };
        line.iter()
            .zip(marks)
            .all(|(word, marks)| taken(*word) & marks == *marks)
    }
}

/// The words of a line, or the key's cells in it, marked.
pub(crate) type Line = [u64; 8];

/// A key's cells in one line.
#[derive(Clone, Copy)]
struct Place {
    line: u64,
    /// Which of the caller's keys.
    key: u32,
    marks: Line,
}

/// A batch of changes: each request is one command for some keys.
pub(crate) struct Changes {
    pub(crate) requests: Vec<Request>,
    /// For each request, which of `keys` it is about.
    spans: Vec<Range<usize>>,
    /// The caller's keys in the order of the commands; once for each line.
    keys: Vec<u32>,
}

/// A batch of reads: each request is about one chunk.
pub(crate) struct Reads {
    pub(crate) requests: Vec<Request>,
    chunks: Vec<ChunkReads>,
    places: Vec<Place>,
}

/// The commands of a request, each for some of the places.
struct ChunkReads {
    chunk: usize,
    runs: Vec<(u64, u64, Range<usize>)>,
}

/// A chunk that was not what it must be.
#[derive(Debug, PartialEq)]
pub(crate) struct Missing {
    pub(crate) chunk: usize,
}

impl Body {
    pub(crate) fn new(cells: Cells, name: &str, generation: u64) -> Self {
        Self {
            cells,
            chunks: crate::chunks::chunks(name, generation, cells.lines()),
        }
    }

    pub(crate) const fn cells(&self) -> Cells {
        self.cells
    }

    fn places<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Vec<Place> {
        let mut places =
            Vec::with_capacity(keys.size_hint().0 * self.cells.lines_per_key() as usize);
        for (key, hash) in keys {
            let mut each = |line, marks| places.push(Place { line, key, marks });
            match self.cells {
                Cells::Bits(shape) => shape.for_each_line(*hash, &mut each),
                Cells::Counters(shape) => shape.for_each_line(*hash, &mut each),
            }
        }
        places
    }

    /// The commands that add keys, each atomic and telling what was new.
    pub(crate) fn adds<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Changes {
        self.changes(
            keys,
            |cells, chunk| {
                let mut command = Cmd::with_capacity(
                    2 + 5 + KEYS_PER_COMMAND * cells.hashes_per_line() * 4,
                    64 + KEYS_PER_COMMAND * cells.hashes_per_line() * 15,
                );
                command.arg("BITFIELD").arg(&chunk.key);
                if let Cells::Counters(_) = cells {
                    command.arg("OVERFLOW").arg("SAT");
                }
                command
            },
            |cells, command, offset| {
                match cells {
                    Cells::Bits(_) => command.arg("SET").arg("u1"),
                    Cells::Counters(_) => command.arg("INCRBY").arg("u4"),
                };
                command.arg(offset).arg("1");
            },
            |command, chunk| {
                command.arg("GET").arg("u8").arg(chunk.len * 8);
            },
        )
    }

    fn changes<'a>(
        &self,
        keys: impl Iterator<Item = (u32, &'a Hash)>,
        begin: impl Fn(Cells, &Chunk) -> Cmd,
        cell: impl Fn(Cells, &mut Cmd, u64),
        end: impl Fn(&mut Cmd, &Chunk),
    ) -> Changes {
        let places = self.places(keys);
        // By chunk, and within it as they came: of equal keys the first is new.
        let mut order: Vec<u64> = (0..)
            .zip(&places)
            .map(|(i, place)| place.line / CHUNK_LINES << 32 | i)
            .collect();
        order.sort_unstable();
        let mut changes = Changes {
            requests: Vec::with_capacity(places.len() / KEYS_PER_COMMAND + 1),
            spans: Vec::new(),
            keys: Vec::with_capacity(places.len()),
        };
        for same_chunk in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let chunk = &self.chunks[(same_chunk[0] >> 32) as usize];
            for some in same_chunk.chunks(KEYS_PER_COMMAND) {
                let mut command = begin(self.cells, chunk);
                let start = changes.keys.len();
                for place in some.iter().map(|i| &places[*i as u32 as usize]) {
                    let line = place.line % CHUNK_LINES;
                    self.for_each_offset(line, &place.marks, |offset| {
                        cell(self.cells, &mut command, offset);
                    });
                    changes.keys.push(place.key);
                }
                end(&mut command, chunk);
                changes
                    .requests
                    .push(Request::new(chunk.slot, vec![command]));
                changes.spans.push(start..changes.keys.len());
            }
        }
        changes
    }

    /// Calls `each` with Redis's offset of each marked cell.
    fn for_each_offset(&self, line: u64, marks: &Line, mut each: impl FnMut(u64)) {
        for (word, marks) in (0..).zip(marks) {
            let mut left = *marks;
            while left != 0 {
                let bit = line * 512 + word * 64 + u64::from(left.trailing_zeros());
                each(match self.cells {
                    Cells::Bits(_) => bit ^ 7,
                    // Where the counter's highest bit is.
                    Cells::Counters(_) => bit ^ 4,
                });
                left &= left - 1;
            }
        }
    }

    /// The commands that read the lines of keys.
    pub(crate) fn reads<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Reads {
        let mut places = self.places(keys);
        places.sort_unstable_by_key(|place| place.line);
        let mut requests = Vec::new();
        let mut chunks = Vec::new();
        let mut at = 0;
        for same_chunk in places.chunk_by(|a, b| a.line / CHUNK_LINES == b.line / CHUNK_LINES) {
            let index = (same_chunk[0].line / CHUNK_LINES) as usize;
            let chunk = &self.chunks[index];
            let mut commands = Vec::new();
            let mut runs: Vec<(u64, u64, Range<usize>)> = Vec::new();
            for place in same_chunk {
                let line = place.line % CHUNK_LINES;
                match runs.last_mut() {
                    Some((first, last, run))
                        if line - *last <= GAP_LINES && line - *first < RUN_LINES =>
                    {
                        *last = line;
                        run.end += 1;
                    }
                    _ => runs.push((line, line, at..at + 1)),
                }
                at += 1;
            }
            for (first, last, _) in &runs {
                let mut command = Cmd::with_capacity(4, chunk.key.len() + 24);
                command.arg("GETRANGE").arg(&chunk.key);
                command.arg(first * 64).arg(last * 64 + 63);
                commands.push(command);
            }
            // Behind the lines: if the chunk is whole now, it was before. Only
            // its creator ever wrote the mark, so one that another client's
            // write created is shorter.
            commands.push(redis::cmd("STRLEN").arg(&chunk.key).take());
            requests.push(Request::new(chunk.slot, commands));
            chunks.push(ChunkReads { chunk: index, runs });
        }
        Reads {
            requests,
            chunks,
            places,
        }
    }
}

impl Changes {
    /// The caller's keys that a request is about.
    pub(crate) fn keys_of(&self, request: usize) -> &[u32] {
        &self.keys[self.spans[request].clone()]
    }

    /// Calls `each` with a key and whether it was new, for one request's
    /// answer; `None` if the chunk was not there.
    pub(crate) fn was_new(
        &self,
        cells: Cells,
        request: usize,
        answer: &[Value],
        mut each: impl FnMut(u32, bool),
    ) -> Option<()> {
        let [Value::Array(values)] = answer else {
            return None;
        };
        let (mark, values) = values.split_last()?;
        let keys = self.keys_of(request);
        let per_key = cells.hashes_per_line();
        if *mark != Value::Int(MARK.into()) || values.len() != keys.len() * per_key {
            return None;
        }
        // A bit that was 0; a counter that is 1 now.
        let new = match cells {
            Cells::Bits(_) => Value::Int(0),
            Cells::Counters(_) => Value::Int(1),
        };
        for (key, values) in keys.iter().zip(values.chunks(per_key)) {
            each(*key, values.contains(&new));
        }
        Some(())
    }
}

impl Reads {
    /// The chunk that a request is about.
    pub(crate) fn chunk_of(&self, request: usize) -> usize {
        self.chunks[request].chunk
    }

    /// Calls `each` with a key, one of its lines and its cells there, for one
    /// request's answer; `None` if the chunk was not there or not whole.
    pub(crate) fn lines(
        &self,
        body: &Body,
        request: usize,
        answer: &[Value],
        mut each: impl FnMut(u32, &Line, &Line),
    ) -> Option<()> {
        let about = &self.chunks[request];
        let (Value::Int(len), lines) = answer.split_last()? else {
            return None;
        };
        if *len as u64 != body.chunks[about.chunk].len + 1 || lines.len() != about.runs.len() {
            return None;
        }
        for ((first, last, places), value) in about.runs.iter().zip(lines) {
            let Value::BulkString(bytes) = value else {
                return None;
            };
            let (lines, rest) = bytes.as_chunks::<64>();
            if lines.len() as u64 != last - first + 1 || !rest.is_empty() {
                return None;
            }
            for place in &self.places[places.clone()] {
                let bytes = &lines[(place.line % CHUNK_LINES - first) as usize];
                let mut line = [0; 8];
                for (word, bytes) in line.iter_mut().zip(bytes.as_chunks().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                each(place.key, &line, &place.marks);
            }
        }
        Some(())
    }
}
