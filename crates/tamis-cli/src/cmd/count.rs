use crate::engine::input::Input;
use crate::engine::key::KeyMaker;
use crate::engine::reader::{Chunk, Reader};
use crate::location::{KeyFile, named};
use crate::stream::{CHUNK, InputArgs};
use crate::{Exit, output};
use anyhow::Result;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tamis::{AnyFilter, Map};

/// Tell how often each key was added to a counting or cuckoo filter
///
/// Prints the count, a tab and the record. The count is never too low, except
/// that a counter ends at 15 and a cuckoo filter holds only a few copies; it
/// is too high as rarely as the filter is wrong.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 some key was added at least once, 1 none was, 2 an error.

Examples:
  tamis count logins.tamis names.txt
  tamis count logins.tamis names.txt | awk '$1 > 3'")]
pub(crate) struct Args {
    /// The filter
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let named = || named(&args.filter);
    let filter = args.key.open()?.map(&args.filter).map_err(named())?;
    // Says it before any input is read.
    filter.count_hashes(&[], &mut []).map_err(named())?;
    count(&filter, &args)
}

/// One record after the other: a number in front of each leaves the engine,
/// which moves records unchanged, nothing to do.
fn count(filter: &AnyFilter<Map>, args: &Args) -> Result<Exit> {
    let rule = args.input.rule()?;
    let layout = rule.layout();
    let inputs = args.input.paths().into_iter();
    let inputs = inputs.map(|path| Input::open(&path, &Arc::default()));
    let mut reader = Reader::new(Box::new(inputs), &rule, CHUNK);
    let mut keys = KeyMaker::new(&rule);
    let mut chunk = Chunk::default();
    let mut out = BufWriter::with_capacity(CHUNK, output::stdout()?);
    let mut exit = Exit::NoneFound;
    while reader.read(&mut chunk) {
        let bytes = chunk.records();
        let mut written = Ok(());
        layout.for_each(bytes, |start, end| {
            let record = &bytes[start..end];
            let (key, _) = keys.key(layout.content(record), &chunk.columns);
            // That the kind counts was asked above.
            let count = filter.count(key).unwrap_or(0);
            if count > 0 {
                exit = Exit::Done;
            }
            if written.is_ok() {
                written = write!(out, "{count}\t").and_then(|()| out.write_all(record));
            }
        });
        written?;
    }
    out.flush()?;
    let errors = reader.into_errors();
    for error in &errors {
        eprintln!("tamis: {error}");
    }
    Ok(match errors.is_empty() {
        true => exit,
        false => Exit::InputFailed,
    })
}
