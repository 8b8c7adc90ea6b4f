use crate::{Cli, Exit, output};
use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

/// Print a script with which a shell completes commands and options
///
/// A Debian package has the scripts of bash, zsh and fish in place already.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  source <(tamis completions bash)                              in ~/.bashrc
  source <(tamis completions zsh)                               in ~/.zshrc, below compinit
  tamis completions fish > ~/.config/fish/completions/tamis.fish
  tamis completions powershell | Out-String | Invoke-Expression in $PROFILE")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    // Without this, scripts would offer hidden commands, too.
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|c| !c.is_hide_set()).cloned();
    let mut tamis = Command::new("tamis")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tamis, "tamis", &mut script);
    output::print(std::str::from_utf8(&script)?)?;
    Ok(Exit::Done)
}
