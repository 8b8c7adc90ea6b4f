//! The commands that query and change a body, and the meaning of their answers.
//!
//! Redis numbers bits from the most significant of a byte, Tamis from the
//! least; the bytes are the same, so offsets are translated here.

use crate::chunks::{CHUNK_LINES, CLOSED, Chunk, Foot, MARK, chunks};
use crate::packed::Packed;
use crate::request::{Again, Request};
use redis::Value;
use std::ops::Range;
use tamis::Hash;
use tamis::internals::raw::{BlockedShape, CountingShape, Shape};

/// Keys whose bits one command sets: enough to share its cost, few enough not
/// to hold up other clients of the server.
const KEYS_PER_COMMAND: usize = 12;
/// One command reads lines that are at most this far apart: the bytes between
/// cost the server less than another command.
const GAP_LINES: u64 = 4;
/// The most lines that one command reads.
const RUN_LINES: u64 = 64;

/// The maximum of a counter.
pub(crate) const MOST_COUNTED: u8 = 15;

/// Decrements the counters of keys of one chunk. A key with a counter of 0 is
/// absent, so none of its counters change; a counter of 15 stays forever.
const REMOVE: &str = "
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
local per_key, removed = tonumber(ARGV[2]), {}
for first = 3, #ARGV, per_key do
  local get, take, there = {}, {}, 1
  for i = first, first + per_key - 1 do
    get[#get + 1] = 'GET'
    get[#get + 1] = 'u4'
    get[#get + 1] = ARGV[i]
  end
  local counts = redis.call('BITFIELD', KEYS[1], unpack(get))
  for i = 1, per_key do
    if counts[i] == 0 then there = 0 end
    if counts[i] < 15 then
      take[#take + 1] = 'INCRBY'
      take[#take + 1] = 'u4'
      take[#take + 1] = ARGV[first + i - 1]
      take[#take + 1] = '-1'
    end
  end
  if there == 1 and #take > 0 then redis.call('BITFIELD', KEYS[1], unpack(take)) end
  removed[#removed + 1] = there
end
return removed";

/// A body of bits or counters, and its chunks.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    cells: Cells,
    pub(crate) generation: u64,
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

    /// The number of 64-byte lines.
    pub(crate) const fn lines(self) -> u64 {
        match self {
            Self::Bits(shape) => shape.lines(),
            Self::Counters(shape) => shape.lines() * self.width(),
        }
    }

    /// How many consecutive 64-byte lines make one of the shape's lines.
    pub(crate) const fn width(self) -> u64 {
        match self {
            Self::Bits(_) => 1,
            Self::Counters(_) => 4,
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

    /// The smallest of the marked cells of a line.
    pub(crate) fn least(self, line: &[u8], marks: &Marks) -> u8 {
        let mut least = MOST_COUNTED;
        for_each_mark(marks, |cell| {
            let cell = cell as usize;
            least = least.min(match self {
                Self::Bits(_) => line[cell / 8] >> (cell % 8) & 1,
                Self::Counters(_) => line[cell / 2] >> (cell % 2 * 4) & 15,
            });
        });
        least
    }
}

/// The key's cells in a line, marked: bit `w * 64 + p` is word `w`'s bit `p`.
pub(crate) type Marks = [u64; 8];

fn for_each_mark(marks: &Marks, mut each: impl FnMut(u64)) {
    for (first, marks) in (0..).step_by(64).zip(marks) {
        let mut left = *marks;
        while left != 0 {
            each(first + u64::from(left.trailing_zeros()));
            left &= left - 1;
        }
    }
}

/// A key's cells in one line.
#[derive(Clone, Copy)]
struct KeyLine {
    /// The first of its 64-byte lines.
    line: u64,
    /// The index of the caller's key.
    key: u32,
    marks: Marks,
}

/// A batch of changes: each request is one command for some keys. The caller
/// may append other requests.
pub(crate) struct Changes {
    pub(crate) requests: Vec<Request>,
    /// For each request, its chunk and its range of `keys`.
    spans: Vec<(usize, Range<usize>)>,
    /// The caller's keys in the order of the commands, repeated for each line.
    keys: Vec<u32>,
}

/// A batch of reads: each request is about one chunk. The caller may append
/// other requests.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) requests: Vec<Request>,
    chunks: Vec<ChunkReads>,
    places: Vec<KeyLine>,
}

/// What a request reads.
struct ChunkReads {
    body: usize,
    chunk: usize,
    runs: Vec<Run>,
}

/// Neighbouring lines that one command reads.
struct Run {
    first: u64,
    last: u64,
    /// The places that lie in these lines.
    places: Range<usize>,
}

impl Body {
    /// A body that we create, with all its chunks. For a body that a record
    /// claims, chunks are only named once they have been found.
    pub(crate) fn new(cells: Cells, name: &str, generation: u64) -> Self {
        let chunks = chunks(name, generation, cells.lines(), 0..u64::MAX);
        Self::of_chunks(cells, generation, chunks.collect())
    }

    pub(crate) const fn of_chunks(cells: Cells, generation: u64, chunks: Vec<Chunk>) -> Self {
        Self {
            cells,
            generation,
            chunks,
        }
    }

    pub(crate) const fn cells(&self) -> Cells {
        self.cells
    }

    fn places<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Vec<KeyLine> {
        let mut places =
            Vec::with_capacity(keys.size_hint().0 * self.cells.lines_per_key() as usize);
        for (key, hash) in keys {
            let bits = match self.cells {
                Cells::Bits(shape) => shape,
                Cells::Counters(shape) => shape.bits(),
            };
            bits.for_each_line(*hash, |line, marks| {
                let line = line * self.cells.width();
                places.push(KeyLine { line, key, marks });
            });
        }
        places
    }

    /// Sorted by line, which suits the servers' caches; stable, so that the
    /// first of equal keys is the new one.
    fn sorted_places<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Vec<KeyLine> {
        let places = self.places(keys);
        let mut order: Vec<(u64, u32)> = places.iter().map(|place| place.line).zip(0..).collect();
        order.sort_unstable();
        order.iter().map(|(_, i)| places[*i as usize]).collect()
    }

    /// The commands that add keys; each is atomic and reports which keys were
    /// new. If replicas must have the keys, each command also increments the
    /// pulse: setting bits that are already set isn't a write, so WAIT would
    /// return at once.
    pub(crate) fn adds<'a>(
        &self,
        keys: impl Iterator<Item = (u32, &'a Hash)>,
        replicated: bool,
    ) -> Changes {
        let per_key = self.cells.hashes_per_line();
        let overflow = matches!(self.cells, Cells::Counters(_));
        let change: &[u8] = match self.cells {
            Cells::Bits(_) => b"$3\r\nSET\r\n$2\r\nu1\r\n",
            Cells::Counters(_) => b"$6\r\nINCRBY\r\n$2\r\nu4\r\n",
        };
        let again = match self.cells {
            Cells::Bits(_) => Again::Harmless,
            Cells::Counters(_) => Again::Never,
        };
        self.changes(keys, again, |places, chunk| {
            let cells = places.len() * per_key;
            let mut command = Packed::default();
            command
                .bytes
                .reserve(192 + chunk.key.len() + cells * (change.len() + 24));
            let pulse = 6 * usize::from(replicated);
            command.begin(2 + 2 * usize::from(overflow) + 4 * cells + pulse + 3);
            command.text("BITFIELD");
            command.text(&chunk.key);
            if overflow {
                command.text("OVERFLOW");
                command.text("SAT");
            }
            self.for_each_offset(places, |offset| {
                command.raw(change);
                command.number(offset);
                command.raw(b"$1\r\n1\r\n");
            });
            if replicated {
                command.text("OVERFLOW");
                command.text("WRAP");
                command.text("INCRBY");
                command.text("u8");
                command.number(chunk.pulse_at() * 8);
                command.number(1);
            }
            command.text("GET");
            command.text("u8");
            command.number(chunk.mark_at() * 8);
            Request {
                replicated,
                ..Request::packed(chunk.slot, command)
            }
        })
    }

    /// The commands that remove keys. Keys must have one line, so that a key is
    /// removed as a whole or not at all.
    pub(crate) fn removals<'a>(&self, keys: impl Iterator<Item = (u32, &'a Hash)>) -> Changes {
        let per_key = self.cells.hashes_per_line();
        self.changes(keys, Again::Never, |places, chunk| {
            let mut command = Packed::default();
            command.begin(6 + places.len() * per_key);
            command.text("EVAL");
            command.text(REMOVE);
            command.number(1);
            command.text(&chunk.key);
            command.number(chunk.stored());
            command.number(per_key as u64);
            self.for_each_offset(places, |offset| command.number(offset));
            Request::packed(chunk.slot, command).replicated()
        })
    }

    fn changes<'a>(
        &self,
        keys: impl Iterator<Item = (u32, &'a Hash)>,
        again: Again,
        request: impl Fn(&[KeyLine], &Chunk) -> Request,
    ) -> Changes {
        let places = self.sorted_places(keys);
        let mut changes = Changes {
            requests: Vec::with_capacity(places.len() / KEYS_PER_COMMAND + 1),
            spans: Vec::new(),
            keys: Vec::with_capacity(places.len()),
        };
        for same_chunk in places.chunk_by(|a, b| a.line / CHUNK_LINES == b.line / CHUNK_LINES) {
            let index = (same_chunk[0].line / CHUNK_LINES) as usize;
            let chunk = &self.chunks[index];
            for some in same_chunk.chunks(KEYS_PER_COMMAND) {
                let start = changes.keys.len();
                changes.keys.extend(some.iter().map(|place| place.key));
                let request = request(some, chunk);
                changes.requests.push(Request { again, ..request });
                changes.spans.push((index, start..changes.keys.len()));
            }
        }
        changes
    }

    /// Calls `each` with Redis's offset of each marked cell.
    fn for_each_offset(&self, places: &[KeyLine], mut each: impl FnMut(u64)) {
        for place in places {
            let first = place.line % CHUNK_LINES * 512;
            for_each_mark(&place.marks, |cell| {
                each(match self.cells {
                    Cells::Bits(_) => (first + cell) ^ 7,
                    // The offset of the counter's highest bit.
                    Cells::Counters(_) => (first + cell * 4) ^ 4,
                });
            });
        }
    }
}

impl Changes {
    /// The number of requests about keys.
    pub(crate) const fn own(&self) -> usize {
        self.spans.len()
    }

    /// The chunk that a request is about.
    pub(crate) fn chunk_of(&self, request: usize) -> usize {
        self.spans[request].0
    }

    /// The caller's keys that a request is about; all of them for an appended
    /// request.
    pub(crate) fn keys_of(&self, request: usize) -> &[u32] {
        match self.spans.get(request) {
            Some((_, keys)) => &self.keys[keys.clone()],
            None => &self.keys,
        }
    }

    /// A request's keys and whether each was removed; `None` if the chunk is
    /// missing.
    pub(crate) fn removed(
        &self,
        request: usize,
        answer: &[Value],
    ) -> Option<impl Iterator<Item = (usize, bool)>> {
        let [Value::Array(values)] = answer else {
            return None;
        };
        let keys = self.keys_of(request);
        let removed = values.iter().map(|value| *value == Value::Int(1));
        (values.len() == keys.len()).then(|| keys.iter().map(|key| *key as usize).zip(removed))
    }

    /// A request's keys, whether each was new, and whether the chunk is closed;
    /// `None` if the chunk is missing.
    pub(crate) fn added(
        &self,
        cells: Cells,
        request: usize,
        answer: &[Value],
    ) -> Option<(bool, impl Iterator<Item = (usize, bool)>)> {
        let [Value::Array(values)] = answer else {
            return None;
        };
        let (mark, values) = values.split_last()?;
        let keys = self.keys_of(request);
        let per_key = cells.hashes_per_line();
        let closed = *mark == Value::Int(CLOSED.into());
        if !closed && *mark != Value::Int(MARK.into()) {
            return None;
        }
        // The pulse may follow.
        let values = values.get(..keys.len() * per_key)?;
        // The old bit was 0, or the new counter is 1.
        let new = match cells {
            Cells::Bits(_) => Value::Int(0),
            Cells::Counters(_) => Value::Int(1),
        };
        let was_new = values
            .chunks(per_key)
            .map(move |values| values.contains(&new));
        Some((closed, keys.iter().map(|key| *key as usize).zip(was_new)))
    }
}

impl Reads {
    /// Adds the commands that read the lines of keys from the body with this
    /// number. If replicas must have the keys that are found, the commands also
    /// increment the pulses, so that there is a write to wait for.
    pub(crate) fn add<'a>(
        &mut self,
        number: usize,
        body: &Body,
        keys: impl Iterator<Item = (u32, &'a Hash)>,
        replicated: bool,
    ) {
        let mut places = body.sorted_places(keys);
        let mut at = self.places.len();
        for same_chunk in places.chunk_by(|a, b| a.line / CHUNK_LINES == b.line / CHUNK_LINES) {
            let index = (same_chunk[0].line / CHUNK_LINES) as usize;
            let chunk = &body.chunks[index];
            let mut runs: Vec<Run> = Vec::new();
            for place in same_chunk {
                let line = place.line % CHUNK_LINES;
                let last = line + body.cells.width() - 1;
                match runs.last_mut() {
                    Some(run) if line <= run.last + GAP_LINES && line - run.first < RUN_LINES => {
                        run.last = last;
                        run.places.end += 1;
                    }
                    _ => runs.push(Run {
                        first: line,
                        last,
                        places: at..at + 1,
                    }),
                }
                at += 1;
            }
            let mut commands = Packed::default();
            commands
                .bytes
                .reserve((runs.len() + 1) * (64 + chunk.key.len()));
            for run in &runs {
                commands.begin(4);
                commands.text("GETRANGE");
                commands.text(&chunk.key);
                commands.number(run.first * 64);
                commands.number(run.last * 64 + 63);
            }
            // After the lines: if the chunk is whole now, it was whole when
            // they were read.
            commands.begin(4);
            commands.text("GETRANGE");
            commands.text(&chunk.key);
            commands.number(chunk.len);
            commands.number(chunk.stored());
            if replicated {
                commands.begin(6);
                commands.text("BITFIELD");
                commands.text(&chunk.key);
                commands.text("INCRBY");
                commands.text("u8");
                commands.number(chunk.pulse_at() * 8);
                commands.number(1);
            }
            let lines: u64 = runs.iter().map(|run| run.last - run.first + 1).sum();
            self.requests.push(Request {
                replicated,
                ..Request::packed(chunk.slot, commands).answered_with(lines * 64)
            });
            self.chunks.push(ChunkReads {
                body: number,
                chunk: index,
                runs,
            });
        }
        self.places.append(&mut places);
    }

    /// The number of requests about keys.
    pub(crate) const fn own(&self) -> usize {
        self.chunks.len()
    }

    /// The body and the chunk that a request is about; `None` for an appended
    /// request.
    pub(crate) fn about(&self, request: usize) -> Option<(usize, usize)> {
        let about = self.chunks.get(request)?;
        Some((about.body, about.chunk))
    }

    /// Calls `each` with a key, one of its lines and its cells there, and
    /// returns the foot of the chunk; `None` if the chunk is missing or not
    /// whole.
    pub(crate) fn lines(
        &self,
        request: usize,
        answer: &[Value],
        mut each: impl FnMut(u32, &[u8], &Marks),
    ) -> Option<Foot> {
        let runs = &self.chunks[request].runs;
        let (lines, rest) = answer.split_at_checked(runs.len())?;
        let foot = foot(rest.first()?)?;
        for (run, value) in runs.iter().zip(lines) {
            let Value::BulkString(bytes) = value else {
                return None;
            };
            let (lines, rest) = bytes.as_chunks::<64>();
            if lines.len() as u64 != run.last - run.first + 1 || !rest.is_empty() {
                return None;
            }
            for place in &self.places[run.places.clone()] {
                let line = &lines[(place.line % CHUNK_LINES - run.first) as usize..];
                each(place.key, line.as_flattened(), &place.marks);
            }
        }
        Some(foot)
    }
}

/// The command that reads the foot of a chunk.
pub(crate) fn read_foot(chunk: &Chunk) -> Request {
    // Asks for one byte too many, to notice a longer string.
    let command = command!("GETRANGE", &chunk.key, chunk.len, chunk.stored());
    Request::new(chunk.slot, &[command])
}

/// Decodes the answer to `read_foot`; `None` if the chunk is missing or not
/// whole.
pub(crate) fn foot(answer: &Value) -> Option<Foot> {
    match answer {
        Value::BulkString(bytes) => Foot::decode(bytes),
        _ => None,
    }
}
