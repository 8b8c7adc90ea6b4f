//! How a body is cut into strings, and the names of these.
//!
//! A chunk is whole lines, nearly 4 MiB of the body, followed by its foot:
//!
//! | bytes | |
//! | ---: | --- |
//! | 8 | if the layer has a successor, the generation of the successor; else 0 |
//! | 1 | the pulse: a number to increment when a write is needed |
//! | 1 | the mark |
//!
//! A command that writes bits would silently create a missing chunk. Only the
//! creator of a chunk writes the mark, its last byte, so a string without the
//! mark or with another length isn't the chunk.
//!
//! Its key is `NAME:{generation.i.j}`. Redis Cluster places a key by the text
//! in the braces; `j` is the first number that brings chunk `i` to its share of
//! the slots, because random tags would load nodes unevenly.

use std::ops::Range;

// Defined in the library, which computes the server memory of chunks without a
// client, too.
pub(crate) use tamis::internals::plan::server::{CHUNK_LINES, FOOT, LINE};

/// Offsets in the foot.
const PULSE_AT: u64 = 8;
const MARK_AT: u64 = 9;
/// The last byte of a chunk.
pub(crate) const MARK: u8 = 0xA5;
/// The last byte of a chunk in a layer that has a successor: the successor
/// decides whether keys added from now on are new.
pub(crate) const CLOSED: u8 = 0x5A;
/// Slots of a Redis cluster.
pub(crate) const SLOTS: u16 = 16384;
/// The slots are divided into this many shares, which chunks use in turn.
const SHARES: u16 = 64;

/// One string of a body.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) key: String,
    pub(crate) slot: u16,
    /// Bytes, without the foot.
    pub(crate) len: u64,
}

impl Chunk {
    /// The length of the string, with the foot.
    pub(crate) const fn stored(&self) -> u64 {
        self.len + FOOT
    }

    /// The offset of the pulse.
    pub(crate) const fn pulse_at(&self) -> u64 {
        self.len + PULSE_AT
    }

    /// The offset of the mark.
    pub(crate) const fn mark_at(&self) -> u64 {
        self.len + MARK_AT
    }
}

/// The state of a whole chunk, as its foot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foot {
    Open,
    /// The layer has a successor, whose chunks have this generation.
    ClosedFor(u64),
}

impl Foot {
    pub(crate) fn encode(self) -> [u8; FOOT as usize] {
        let mut foot = [0; FOOT as usize];
        match self {
            Self::Open => foot[MARK_AT as usize] = MARK,
            Self::ClosedFor(next) => {
                foot[..8].copy_from_slice(&next.to_le_bytes());
                foot[MARK_AT as usize] = CLOSED;
            }
        }
        foot
    }

    /// Decodes the bytes behind the lines; `None` if they aren't a foot.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let foot: &[u8; FOOT as usize] = bytes.try_into().ok()?;
        let next = u64::from_le_bytes(*foot.first_chunk()?);
        match foot[MARK_AT as usize] {
            MARK => Some(Self::Open),
            CLOSED => Some(Self::ClosedFor(next)),
            _ => None,
        }
    }
}

/// How many chunks a body of this many lines has.
pub(crate) const fn count(lines: u64) -> u64 {
    lines.div_ceil(CHUNK_LINES)
}

/// Some chunks of a body of this many lines. Makes only the chunks asked for,
/// so a record that claims many lines costs nothing.
pub(crate) fn chunks(
    name: &str,
    generation: u64,
    lines: u64,
    which: Range<u64>,
) -> impl Iterator<Item = Chunk> {
    (which.start..which.end.min(count(lines))).map(move |i| {
        let (tag, slot) = tag(generation, i);
        Chunk {
            key: format!("{name}:{{{tag}}}"),
            slot,
            len: (lines - i * CHUNK_LINES).min(CHUNK_LINES) * LINE,
        }
    })
}

/// The range of the body that a chunk holds.
pub(crate) fn bytes_of(index: usize, chunk: &Chunk) -> Range<usize> {
    let start = index * (CHUNK_LINES * LINE) as usize;
    start..start + chunk.len as usize
}

/// The tag of chunk `i`, and its slot.
fn tag(generation: u64, i: u64) -> (String, u16) {
    let share = share(generation, i);
    (0..)
        .map(|j| {
            let tag = format!("{generation:016x}.{i}.{j}");
            let slot = crc16(tag.as_bytes()) % SLOTS;
            (tag, slot)
        })
        .find(|(_, slot)| slot / (SLOTS / SHARES) == share)
        .expect("every slot has tags")
}

/// A tag for data that must survive the loss of the node that has `name`: its
/// slot is half a cluster away, on another node if nodes have slots in a row.
pub(crate) fn far_tag(name: &str) -> String {
    let far = (slot(name) + SLOTS / 2) % SLOTS;
    let same_share = |tag: &String| {
        let slot = crc16(tag.as_bytes()) % SLOTS;
        slot / (SLOTS / SHARES) == far / (SLOTS / SHARES)
    };
    let tags = (0..).map(|j| format!("witness.{j}"));
    tags.into_iter()
        .find(same_share)
        .expect("every slot has tags")
}

/// Divides the slots into halves, quarters and so on, so that even a few chunks
/// are spread over all slots. The start depends on the generation.
fn share(generation: u64, i: u64) -> u16 {
    let reversed = (i as u16 % SHARES).reverse_bits() >> (16 - SHARES.ilog2());
    (reversed + (generation % u64::from(SHARES)) as u16) % SHARES
}

/// The slot of a key, by its tag if it has one.
pub(crate) fn slot(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let hashed = match tag {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    };
    crc16(hashed.as_bytes()) % SLOTS
}

/// CRC-16/XMODEM, which Redis Cluster is specified with.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        crc << 8 ^ CRC_TABLE[usize::from((crc >> 8) as u8 ^ byte)]
    })
}

const CRC_TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = crc << 1 ^ if crc & 0x8000 != 0 { 0x1021 } else { 0 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot("123456789"), 0x31C3);
        assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
        assert_eq!(slot("foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot("foo{{bar}}zap"), crc16(b"{bar") % SLOTS);
    }

    #[test]
    fn far_is_another_node() {
        for (name, nodes) in (0..100).flat_map(|i| [2, 3, 5, 8].map(|nodes| (i, nodes))) {
            let name = format!("filter-{name}");
            let node = |slot: u16| u32::from(slot) * nodes / u32::from(SLOTS);
            let far = slot(&format!("{name}:{{{}}}", far_tag(&name)));
            assert_ne!(node(slot(&name)), node(far), "{name} on {nodes}");
        }
    }

    #[test]
    fn the_body_is_cut_without_gap_or_overlap() {
        for lines in [1, CHUNK_LINES - 1, CHUNK_LINES, 5 * CHUNK_LINES + 7] {
            let mut next = 0;
            for (i, chunk) in chunks("seen", 9, lines, 0..u64::MAX).enumerate() {
                let range = bytes_of(i, &chunk);
                assert_eq!((range.start, slot(&chunk.key)), (next, chunk.slot));
                next = range.end;
            }
            assert_eq!(next as u64, lines * LINE);
        }
    }

    #[test]
    fn a_foot_is_what_its_creator_wrote() {
        for foot in [Foot::Open, Foot::ClosedFor(7), Foot::ClosedFor(u64::MAX)] {
            let mut bytes = foot.encode();
            bytes[PULSE_AT as usize] = 99;
            assert_eq!(Foot::decode(&bytes), Some(foot));
            assert_eq!(Foot::decode(&bytes[1..]), None);
            assert_eq!(Foot::decode(&[&bytes[..], &[MARK]].concat()), None);
            bytes[MARK_AT as usize] = 0;
            assert_eq!(Foot::decode(&bytes), None);
        }
    }

    /// Nodes that share the slots equally also share the chunks equally, within
    /// a tenth, or within a chunk or two where there are few.
    #[test]
    fn chunks_are_spread_evenly() {
        for nodes in [3u64, 5, 8] {
            for (count, slack) in [(8u64, 2), (31, 2), (64, 2), (512, 5), (1000, 8)] {
                for generation in [0, 77, u64::MAX] {
                    let mut having = vec![0u64; nodes as usize];
                    for chunk in chunks("seen", generation, count * CHUNK_LINES, 0..count) {
                        let node = u64::from(chunk.slot) * nodes / u64::from(SLOTS);
                        having[node as usize] += 1;
                    }
                    let even = count as f64 / nodes as f64;
                    for n in &having {
                        let off = (*n as f64 - even).abs();
                        assert!(
                            off <= slack as f64,
                            "{nodes} nodes, {count} chunks: {having:?}"
                        );
                    }
                }
            }
        }
    }
}
