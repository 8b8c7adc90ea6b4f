use crate::location::{KeyFile, Place, RedisArgs, in_redis, named};
use crate::remote::{Remote, with_keys};
use crate::stream::{InputArgs, Keyed, Run};
use crate::{Exit, output};
use anyhow::Result;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use tamis_records::key::{KeyMaker, NoKey, Refused, Wrong};
use tamis_records::reader::{CHUNK, Chunk};

/// Show how often each key was added to a counting or cuckoo filter
///
/// Prints the count, a tab and the record. The count is never too low, except
/// that a counter stops at 15 and a cuckoo filter holds only a few copies. It
/// is too high only at the filter's rate.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 a key was added at least once, 1 none was, 2 an error.

Examples:
  tamis count logins.tamis names.txt
  tamis count logins.tamis names.txt | awk '$1 > 3'")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let input = &args
        .input
        .find_for(&args.filter, &args.key, &args.redis, &[])?;
    match &args.filter {
        Place::File(path) => {
            let filter = args.key.open()?.open(path).map_err(named(path))?;
            count(input, filter.hasher(), |hashes, counts| {
                filter.count_many(hashes, counts).map_err(named(path))
            })
        }
        Place::Redis(at) => {
            let mut filter = args.redis.open(at, &args.key)?;
            with_keys!(filter, keyed => count(input, keyed, |keys, counts| {
                Remote::count(&mut filter, keys, counts).map_err(in_redis(at))
            }))
        }
    }
}

/// One chunk of records after the other: a number in front of each leaves the
/// engine, which moves records unchanged, nothing to do.
fn count<H: Keyed>(
    input: &Run,
    hasher: &H,
    mut ask: impl FnMut(&[H::Token], &mut [u64]) -> Result<()>,
) -> Result<Exit> {
    // Whether the kind counts is said before any input is read.
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
