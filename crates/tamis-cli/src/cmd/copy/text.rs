//! Filters as base64 text, for places that only take text.

use super::{Args, LAYOUTS};
use crate::location::{Place, warn_of_secret};
use crate::{Exit, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use tamis::internals::file::open_regular;

/// The start of every filter of ours in base64: `TAMIS\r\n`, minus the bits that depend on the next byte.
const BEGINNING: &[u8] = b"VEFNSVMNCh";
/// Enough to recognise text, even after blank lines.
const HEAD: u64 = 256;

/// Prints a filter as text.
pub(super) fn print(args: &Args) -> Result<Exit> {
    if !matches!(&args.to, Place::File(path) if path == Path::new("-")) {
        bail!(
            "--as base64 writes to standard output\nhint: tamis copy {} - --as base64 > TEXT",
            args.from
        );
    }
    let filter = args.from.load(&args.key)?;
    warn_of_secret(filter.hasher(), "the text");
    output::print(&(filter.to_base64() + "\n"))?;
    Ok(Exit::Done)
}

/// The text of a filter, if the file or standard input holds one.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    if path == Path::new("-") {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.context("standard input: expected a filter as text in base64")?;
        return Ok(Some(text));
    }
    let Ok(file) = open_regular(path, false) else {
        // Opening it later reports the error.
        return Ok(None);
    };
    let mut head = Vec::new();
    let read = file.take(HEAD).read_to_end(&mut head);
    if read.is_err() || !head.trim_ascii_start().starts_with(BEGINNING) {
        return Ok(None);
    }
    let text = fs::read_to_string(path);
    text.with_context(|| format!("reading {}", path.display()))
        .map(Some)
}

/// Turns text back into a filter.
pub(super) fn copy(path: &Path, text: &str, args: &Args) -> Result<Exit> {
    if args.as_kind.is_some() {
        bail!("{} is a Tamis filter as text: {LAYOUTS}", path.display());
    }
    let name = || path.display().to_string();
    let opened = tamis_formats::open(text.as_bytes(), tamis_formats::Hint::default());
    if let Ok(mut filter) = opened
        && filter.is_packed()
    {
        let Place::File(to) = &args.to else {
            bail!(
                "{} is a {} filter, which lives in a file",
                name(),
                filter.format()
            );
        };
        if to.extension().is_some_and(|end| end == "tamis") {
            bail!(
                "{} is a {} filter, and {} would be a Tamis filter\nhint: name the file otherwise",
                name(),
                filter.format(),
                args.to
            );
        }
        filter.unpack();
        let bytes = filter.to_bytes();
        crate::foreign::write(to, &bytes, args.check(to)?)?;
        say!("{}: {}", args.to, crate::human::size(bytes.len() as u64));
        return Ok(Exit::Done);
    }
    let filter = args.key.open()?.from_base64(text).with_context(name)?;
    args.save(&filter)?;
    Ok(Exit::Done)
}
