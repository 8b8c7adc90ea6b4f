//! Which parts of a filter exist. The numbers in a record aren't trusted before
//! they were compared with the parts on the servers.

use super::reading::is_wrong_type;
use super::{Engine, cells_of};
use crate::Error;
use crate::body::{Body, Cells, foot, read_foot};
use crate::chunks::{Chunk, Foot, chunks, count};
use crate::link::Link;
use crate::request::Request;
use redis::Value;
use tamis::internals::raw::Shape;

/// Chunks that are looked up together.
pub(super) const TOGETHER: usize = 1 << 8;
const WINDOW: u64 = TOGETHER as u64;

impl<L: Link> Engine<L> {
    /// Finds the body of the filter or those of its layers.
    pub(super) async fn find_bodies(&mut self) -> Result<(), Error> {
        match self.header.shape() {
            Shape::Growing(_) => return self.load_layers().await,
            Shape::Window(_) => return self.find_window().await,
            _ => {}
        }
        let cells = cells_of(&self.header)?;
        self.bodies = vec![self.find_body(cells, self.record.generation).await?];
        Ok(())
    }

    /// A body whose chunks all exist and are whole.
    pub(super) async fn find_body(&mut self, cells: Cells, generation: u64) -> Result<Body, Error> {
        let lines = cells.lines();
        let mut found = Vec::new();
        while (found.len() as u64) < count(lines) {
            let start = found.len() as u64;
            let some = chunks(&self.name, generation, lines, start..start + WINDOW);
            let some: Vec<Chunk> = some.collect();
            if let Some(missing) = self.feet(&some).await?.iter().position(Option::is_none) {
                return Err(self.why_missing(some[missing].key.clone()).await);
            }
            found.extend(some);
        }
        Ok(Body::of_chunks(cells, generation, found))
    }

    /// The feet of chunks; `None` for those that are missing or not whole.
    pub(super) async fn feet(&mut self, chunks: &[Chunk]) -> Result<Vec<Option<Foot>>, Error> {
        let requests = chunks.iter().map(read_foot).collect();
        let answers = match self.wire.ask("looking for the filter", requests).await {
            Err(error) if is_wrong_type(&error) => {
                return Err(self.other_type(chunks).await.unwrap_or(error));
            }
            answers => answers?,
        };
        let feet = answers.iter().map(|answer| foot(answer.first()?));
        Ok(feet.collect())
    }

    /// The error that names a chunk that isn't a string.
    async fn other_type(&mut self, chunks: &[Chunk]) -> Option<Error> {
        let ask = |chunk: &Chunk| Request::new(chunk.slot, &[command!("TYPE", &chunk.key)]);
        let requests = chunks.iter().map(ask).collect();
        let answers = self.wire.ask("looking for the filter", requests).await;
        let mut found = chunks.iter().zip(answers.ok()?);
        found.find_map(|(chunk, answer)| match &answer[..] {
            [Value::SimpleString(kind)] if kind != "string" && kind != "none" => {
                Some(Error::Corrupt {
                    key: chunk.key.clone(),
                    reason: format!("expected a Redis string, got a {kind}; its keys are lost"),
                })
            }
            _ => None,
        })
    }

    /// The remains of a body, whole or not, from its first chunk to the first
    /// gap: chunks are created in this order and deleted in the reverse.
    pub(super) async fn remains(
        &mut self,
        lines: u64,
        generation: u64,
    ) -> Result<Vec<Chunk>, Error> {
        let mut all = Vec::new();
        for start in (0..count(lines)).step_by(TOGETHER) {
            let some = chunks(&self.name, generation, lines, start..start + WINDOW);
            let some: Vec<Chunk> = some.collect();
            let exists =
                |chunk: &Chunk| Request::new(chunk.slot, &[command!("EXISTS", &chunk.key)]);
            let requests = some.iter().map(exists).collect();
            let answers = self.wire.ask("looking for the filter", requests).await?;
            if answers.iter().all(|answer| answer[..] == [Value::Int(0)]) {
                break;
            }
            all.extend(some);
        }
        Ok(all)
    }
}
