use crate::{Cli, Exit};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tamis::internals::file::{Existing, Replacement};

/// Write the manual pages into a folder: tamis.1, and one for each command
///
/// The folder is made if it is missing. Pages of an earlier version are
/// replaced. A Debian package has them in place already.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis man ~/.local/share/man/man1            then: man tamis-dedup
  tamis man pages && man -l pages/tamis.1      read them where they are")]
pub(crate) struct Args {
    /// The folder
    dir: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let mut tamis = Cli::command().disable_help_subcommand(true);
    tamis.build();
    for command in tamis.get_subcommands().filter(|c| !c.is_hide_set()) {
        save(dir, command.clone())?;
    }
    save(dir, tamis)?;
    Ok(Exit::Done)
}

fn save(dir: &Path, command: clap::Command) -> Result<()> {
    let is_main = command.has_subcommands();
    let examples = command.get_after_long_help().map(ToString::to_string);
    let page = Man::new(command.after_long_help(None))
        .source(concat!("tamis ", env!("CARGO_PKG_VERSION")))
        .manual("Tamis");
    let mut below = Roff::new();
    for block in examples.iter().flat_map(|text| text.split("\n\n")) {
        section(block, &mut below);
    }
    if !is_main {
        below.control("SH", ["SEE ALSO"]);
        below.text([roman("tamis(1)")]);
    }
    let mut text = Vec::new();
    page.render(&mut text)?;
    below.to_writer(&mut text)?;

    let path = dir.join(page.get_filename());
    let mut file = Replacement::begin(&path, Existing::Replace)?;
    let written = file.file().write_all(&text);
    written.with_context(|| format!("writing {}", path.display()))?;
    file.place()?;
    Ok(())
}

/// A block below the options: `Exit codes: …`, or `Examples:` and indented lines. Keeps its lines; `clap_mangen` would
/// join them into one paragraph.
fn section(block: &str, roff: &mut Roff) {
    let is_title = |text: &str| text.chars().all(|c| c.is_alphabetic() || c == ' ');
    let (title, body) = match block.split_once(':') {
        Some((title, body)) if is_title(title) => (title, body),
        _ => ("Notes", block),
    };
    roff.control("SH", [title.to_uppercase().as_str()]);
    let mut was_indented = false;
    for line in body.lines().filter(|line| !line.trim().is_empty()) {
        let indented = line.strip_prefix("  ");
        if indented.is_some() != was_indented {
            roff.control(if was_indented { "fi" } else { "nf" }, []);
        }
        was_indented = indented.is_some();
        roff.text([roman(indented.unwrap_or(line.trim()))]);
    }
    if was_indented {
        roff.control("fi", []);
    }
}
