//! `tamis help`: pages for commands, and for what they have in common.

use crate::{Cli, Exit, in_groups, output};
use anyhow::{Result, bail};
use clap::CommandFactory;

/// Explain a command, or what all have in common: locations, keys, environment
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// A command, or locations, keys or environment
    topic: Option<String>,
}

const PAGES: [(&str, &str); 3] = [
    ("locations", include_str!("help/locations.txt")),
    ("keys", include_str!("help/keys.txt")),
    ("environment", include_str!("help/environment.txt")),
];

pub(crate) fn run(args: &Args) -> Result<Exit> {
    let mut all = in_groups(Cli::command());
    let Some(topic) = &args.topic else {
        output::print(&all.render_long_help().to_string())?;
        return Ok(Exit::Done);
    };
    if let Some((_, text)) = PAGES.iter().find(|(name, _)| name == topic) {
        output::print(text)?;
        return Ok(Exit::Done);
    }
    match all.find_subcommand_mut(topic) {
        Some(command) => output::print(&command.render_long_help().to_string())?,
        None => bail!("no command or page is called {topic}\nhint: `tamis --help` lists them"),
    }
    Ok(Exit::Done)
}
