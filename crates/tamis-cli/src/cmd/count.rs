use crate::location::{KeyFile, Place, in_redis, named};
use crate::remote::{Remote, with_keys};
use crate::stream::{Keyed, Run};
use crate::{Exit, output};
use anyhow::Result;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use tamis_records::key::{KeyMaker, NoKey, Refused, Wrong};
use tamis_records::reader::{CHUNK, Chunk};

/// Prints each record after its count and a tab, for filters that count.
pub(super) fn run(place: &Place, key: &KeyFile, input: &Run) -> Result<Exit> {
    match place {
        Place::File(path) => {
            let filter = key.open()?.open(path).map_err(named(path))?;
            count(input, filter.hasher(), |hashes, counts| {
                filter.count_many(hashes, counts).map_err(named(path))
            })
        }
        Place::Redis(at) => {
            let mut filter = key.open_redis(at)?;
            with_keys!(filter, keyed => count(input, keyed, |keys, counts| {
                Remote::count(&mut filter, keys, counts).map_err(in_redis(at))
            }))
        }
    }
}

/// One chunk at a time: the engine moves records unchanged, so it can't put a number in front of each.
fn count<H: Keyed>(
    input: &Run,
    hasher: &H,
    mut ask: impl FnMut(&[H::Token], &mut [u64]) -> Result<()>,
) -> Result<Exit> {
    // Checks that the kind counts before any input is read.
    ask(&[], &mut [])?;
    let rule = input.rule_for(hasher.rule())?;
    let mut reader = input.reader(&rule, CHUNK, &Arc::default());
    let mut keys = KeyMaker::new(&rule);
    let mut chunk = Chunk::default();
    let (mut hashes, mut counts) = (Vec::new(), Vec::new());
    let mut out = BufWriter::with_capacity(CHUNK, output::stdout()?);
    let mut exit = Exit::NoneFound;
    let mut number = 0;
    while reader.read(&mut chunk) {
        let (bytes, framing) = (chunk.records(), chunk.framing);
        hashes.clear();
        if chunk.starts_input {
            number = chunk.header_rows();
        }
        let mut refusal = None;
        framing.for_each(bytes, |start, end| {
            let content = framing.content(&bytes[start..end]);
            let (key, made) = keys.key(content, &chunk.columns);
            number += 1;
            if made == Err(NoKey::NotHex) {
                let wrong = || Refused::new(&chunk.input, number, Wrong::not_hex(content));
                refusal.get_or_insert_with(wrong);
            }
            hashes.push(hasher.token(key));
        });
        if let Some(refusal) = refusal {
            return Err(crate::stream::refused(refusal));
        }
        counts.resize(hashes.len(), 0);
        ask(&hashes, &mut counts)?;
        let mut counted = counts.iter();
        let mut written = Ok(());
        framing.for_each(bytes, |start, end| {
            let count = counted.next().unwrap_or(&0);
            if *count > 0 {
                exit = Exit::Done;
            }
            if written.is_ok() {
                written = write!(out, "{count}\t").and_then(|()| out.write_all(&bytes[start..end]));
            }
        });
        written?;
    }
    out.flush()?;
    let errors = reader.into_errors();
    for error in &errors {
        crate::stream::complain(error);
    }
    Ok(if errors.is_empty() {
        exit
    } else {
        Exit::InputFailed
    })
}
