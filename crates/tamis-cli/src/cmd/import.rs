use crate::Exit;
use crate::apart::{Apart, Role};
use crate::foreign;
use crate::location::{KeyFile, save};
use crate::present::{self, Written};
use anyhow::{Context, Result, bail};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tamis_formats::{Error, Hint};

/// Create a filter from base64 text
///
/// Reads what `tamis export` printed, from a file or standard input, or what
/// pybloomfilter's `to_base64` made, which becomes its file.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to create
    filter: PathBuf,

    /// The text
    #[arg(default_value = "-", value_name = "FILE")]
    text: PathBuf,

    /// Replace the filter if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    apart.note(Role::Filter, &args.filter)?;
    args.key.note(&mut apart)?;
    apart.check_input(&args.text)?;
    present::check(&args.filter, args.force, Written::Foreign(None))?;
    let mut text = String::new();
    if args.text == Path::new("-") {
        io::stdin()
            .read_to_string(&mut text)
            .context("reading stdin")?;
    } else {
        text = std::fs::read_to_string(&args.text)
            .with_context(|| format!("reading {}", args.text.display()))?;
    }
    if let Some(file) = pybloomfilter(&args, &text)? {
        let existing = present::check(&args.filter, args.force, Written::Foreign(None))?;
        foreign::write(&args.filter, &file, existing)?;
        return Ok(Exit::Done);
    }
    let filter = args
        .key
        .open()?
        .from_base64(&text)
        .with_context(|| format!("{}", args.text.display()))?;
    save(&filter, &args.filter, args.force)?;
    Ok(Exit::Done)
}

/// The file that a text of pybloomfilter's is of, if it is one.
fn pybloomfilter(args: &Args, text: &str) -> Result<Option<Vec<u8>>> {
    let mut opened = match tamis_formats::open(text.as_bytes(), Hint::default()) {
        Ok(opened) if opened.is_packed() => opened,
        Err(error @ Error::Unpacked { .. }) => return Err(foreign::named(&args.text)(error)),
        _ => return Ok(None),
    };
    if args.filter.extension().is_some_and(|end| end == "tamis") {
        bail!(
            "{} is a {} filter, and {} would be a Tamis filter\n\
             hint: name the file otherwise",
            args.text.display(),
            opened.format(),
            args.filter.display()
        );
    }
    opened.unpack();
    Ok(Some(opened.to_bytes()))
}
