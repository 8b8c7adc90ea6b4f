//! Whether servers have enough memory for what we want to create. A full server
//! refuses the writes of all its clients, so we don't begin what can't be
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

/// Memory per key besides its string: name, entry, record.
const BESIDE: u64 = 512;

/// A server's memory, from its `INFO memory`.
struct Memory {
    /// Bytes that are free.
    free: u64,
    /// The most bytes that could be used if the server evicts other keys for
    /// them.
    by_eviction: Option<u64>,
    /// Memory of deleted strings that the server is still freeing.
    pending: u64,
}

impl Memory {
    /// `None` if the server has no limit or doesn't say.
    fn of_info(info: &str) -> Option<Self> {
        let number = |name: &str| info::number(info, name);
        let most = number("maxmemory").filter(|most| *most > 0)?;
        let used = number("used_memory")?;
        // Doesn't count buffers of replicas and of the log.
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

/// The memory that a server's allocator uses for this many bytes: it has four
/// sizes between a power of two and the next.
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
    /// An error if a server lacks the memory for a filter with this header.
    pub(super) async fn ask_for_room(&mut self, header: &Header) -> Result<(), Error> {
        self.room_for(&self.bodies_of(header)?, &[]).await
    }

    /// The bodies of a filter with this header: the lines and the generation of
    /// each.
    pub(super) fn bodies_of(&self, header: &Header) -> Result<Vec<(u64, u64)>, Error> {
        Ok(vec![(lines_of(header)?, self.record.generation)])
    }

    /// An error if a server lacks the memory for bodies with these lines and
    /// generations, once others have been deleted for them.
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

    /// An error if the node of a slot doesn't have this many bytes free.
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
            // A user who isn't allowed to ask finds out when memory runs out.
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

    /// The bytes that bodies take on each node, with one of the node's slots.
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
