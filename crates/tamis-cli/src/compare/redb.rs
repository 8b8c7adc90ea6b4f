//! redb: all keys written in one transaction and queried in another.

use super::contender::Contender;
use super::report::Step;
use super::work::{self, Work};
use ::redb::{Database, ReadableDatabase, TableDefinition};
use anyhow::Result;
use std::time::Instant;

const KEYS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("keys");

pub(super) fn build(work: &Work) -> Result<Step> {
    let path = work.file(Contender::Redb);
    let _ = std::fs::remove_file(&path); // left from an earlier run in the same folder
    let database = Database::create(&path)?;
    let transaction = database.begin_write()?;
    let mut table = transaction.open_table(KEYS)?;
    let adding = work.add_held(|keys| {
        for key in keys {
            table.insert(*key, ())?;
        }
        Ok(())
    })?;
    drop(table);
    let start = Instant::now();
    transaction.commit()?;
    drop(database);
    work::built(&path, adding + start.elapsed().as_secs_f64())
}

pub(super) fn ask(work: &Work) -> Result<Step> {
    let path = work.file(Contender::Redb);
    let database = Database::open(&path)?;
    let table = database.begin_read()?.open_table(KEYS)?;
    let answers = work.ask_singly(|key| Ok(table.get(key)?.is_some()))?;
    work::answered(&path, answers)
}
