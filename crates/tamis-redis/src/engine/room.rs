//! Whether servers have room for what is to be created. A server whose memory is
//! full refuses writes of all its clients, so nothing is begun that can't be
//! finished.

use super::{Engine, LOOK_AGAIN, cells_of};
use crate::Error;
use crate::chunks::chunks;
use crate::info;
use crate::link::Link;
use crate::sliding::Sliding;
use std::collections::BTreeMap;
use std::time::Instant;
use tamis::internals::raw::{Header, Shape};

/// Memory of a server's keys besides their strings: names, entries, the record.
const BESIDE: u64 = 512;

/// A server's memory, from its `INFO memory`.
struct Memory {
    /// Bytes that may still be used.
    free: u64,
    /// The most that may be used, if the server throws away other keys for it.
    by_eviction: Option<u64>,
    /// Strings that the server is about to give back.
    pending: u64,
}

impl Memory {
    /// `None` if the server has no limit, or does not say.
    fn of_info(info: &str) -> Option<Self> {
        let number = |name: &str| info::number(info, name);
        let most = number("maxmemory").filter(|most| *most > 0)?;
        let used = number("used_memory")?;
        // Buffers of replicas and of the log, which don't count.
        let used = used.saturating_sub(number("mem_not_counted_for_evict").unwrap_or(0));
        let policy = info::field(info, "maxmemory_policy");
        let evicts = policy.is_some_and(|policy| policy != "noeviction");
        Some(Self {
            free: most.saturating_sub(used),
            by_eviction: evicts.then_some(most),
            pending: number("lazyfree_pending_objects").unwrap_or(0),
        })
    }
}

/// What a server's allocator takes for so many bytes: four sizes between a power
/// of two and the next.
const fn allocated(bytes: u64) -> u64 {
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(if step == 0 { 1 } else { step }) + BESIDE
}

/// The lines of a header's body.
pub(super) fn lines_of(header: &Header) -> Result<u64, Error> {
    match header.shape() {
        Shape::Growing(shape) => Ok(shape.lines().saturating_sub(1)),
        Shape::Window(_) => Ok(Sliding::of(header)?.lines()),
        _ => Ok(cells_of(header)?.lines()),
    }
}

impl<L: Link> Engine<L> {
    /// Errors if a server has no room for a filter of this header.
    pub(super) async fn ask_for_room(&mut self, header: &Header) -> Result<(), Error> {
        self.room_for(&self.bodies_of(header)?, &[]).await
    }

    /// The bodies that a filter of this header will have: the lines and the
    /// generation of each.
    pub(super) fn bodies_of(&self, header: &Header) -> Result<Vec<(u64, u64)>, Error> {
        Ok(vec![(lines_of(header)?, self.record.generation)])
    }

    /// Errors if a server has no room for bodies of so many lines, of these
    /// generations, where others are deleted for them.
    pub(super) async fn room_for(
        &mut self,
        bodies: &[(u64, u64)],
        instead_of: &[(u64, u64)],
    ) -> Result<(), Error> {
        let freed = self.by_node(instead_of);
        for (node, (slot, needed)) in self.by_node(bodies) {
            let freed = freed.get(&node).map_or(0, |(_, bytes)| *bytes);
            self.room_on(node, slot, needed, freed).await?;
        }
        Ok(())
    }

    /// Errors if the node of a slot has no room for so many bytes more.
    pub(super) async fn room_at(&mut self, slot: u16, bytes: u64) -> Result<(), Error> {
        let owner = self.wire.link.owner(slot);
        let node = owner.map_or_else(String::new, |node| node.to_string());
        self.room_on(node, slot, allocated(bytes), 0).await
    }

    async fn room_on(
        &mut self,
        node: String,
        slot: u16,
        needed: u64,
        freed: u64,
    ) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let info = command!("INFO", "memory");
            // A user who may not ask learns it when there is none.
            let answer = self.wire.ask_one("asking for room", slot, info).await;
            let info = answer.ok();
            let info = info.and_then(|info| redis::from_redis_value::<String>(info).ok());
            let Some(memory) = info.as_deref().and_then(Memory::of_info) else {
                return Ok(());
            };
            let free = memory.by_eviction.unwrap_or(memory.free + freed);
            if needed <= free {
                return Ok(());
            }
            if memory.pending == 0 || start.elapsed() >= self.options.retry_for {
                return Err(Error::NoRoom {
                    name: self.name.clone(),
                    node,
                    needed,
                    free,
                });
            }
            self.wire.link.pause(LOOK_AGAIN).await;
        }
    }

    /// The bytes that bodies take on each node, with a slot of the node's.
    fn by_node(&self, bodies: &[(u64, u64)]) -> BTreeMap<String, (u16, u64)> {
        let mut nodes: BTreeMap<String, (u16, u64)> = BTreeMap::new();
        let all =
            |(lines, generation): &(u64, u64)| chunks(&self.name, *generation, *lines, 0..u64::MAX);
        for chunk in bodies.iter().flat_map(all) {
            let owner = self.wire.link.owner(chunk.slot);
            let node = owner.map_or_else(String::new, |node| node.to_string());
            nodes.entry(node).or_insert((chunk.slot, 0)).1 += allocated(chunk.stored());
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_server_says() {
        let info = |more: &str| format!("# Memory\r\nused_memory:900\r\nmaxmemory:1000\r\n{more}");
        let free = |more: &str| Memory::of_info(&info(more)).unwrap().free;
        assert_eq!(free("maxmemory_policy:noeviction\r\n"), 100);
        assert_eq!(free("mem_not_counted_for_evict:50\r\n"), 150);
        let evicting = Memory::of_info(&info("maxmemory_policy:allkeys-lru\r\n")).unwrap();
        assert_eq!(evicting.by_eviction, Some(1000));
        assert!(Memory::of_info("used_memory:900\r\nmaxmemory:0\r\n").is_none());
        assert!(Memory::of_info("").is_none());
        assert_eq!(allocated((4 << 20) - 246), (4 << 20) + BESIDE);
        assert_eq!(allocated((4 << 20) + 1), (5 << 20) + BESIDE);
    }
}
