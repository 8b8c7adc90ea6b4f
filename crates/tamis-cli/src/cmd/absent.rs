use crate::{Exit, FULL_BUILD};
use anyhow::{Result, bail};
use std::ffi::OsString;

/// Not part of this build
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    help_template = "{about}{after-help}",
    after_help = FULL_BUILD
)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

pub(crate) fn run(command: &str) -> Result<Exit> {
    bail!("this build has no `{command}`\n{FULL_BUILD}")
}
