//! The `tamis` command. One file a subcommand, under `cmd/`.

mod about;
mod advice;
mod apart;
mod bar;
mod cmd;
#[cfg(feature = "compare")]
mod compare;
mod engine;
mod estimate;
mod find;
mod foreign;
mod human;
mod index;
mod location;
mod lock;
mod output;
mod redisson;
mod remote;
#[cfg(feature = "serve")]
mod serve;
mod stdout;
mod stream;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Have I seen this key before?
///
/// Filters that answer from a few bits per key: never a false "no", and a false
/// "yes" only at the rate you ask for.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_long_help = "\
Exit codes: 0 a key was found or the work is done, 1 no key was found, 2 an error.

Examples:
  tamis dedup urls.txt                      each distinct line once
  tamis plan -n 10M -p 0.001                what would it cost?
  tamis compare urls.txt                    which is best for these keys?
  tamis create seen.tamis -n 10M            make a filter
  tamis add seen.tamis urls.txt             add keys, one per line
  tamis build words.tamis words.txt         a smaller filter, for a finished list
  tamis check seen.tamis candidates.txt     print the keys that may be in it
  tamis check -v seen.tamis candidates.txt  print the keys that certainly are not
  tamis index -o logs.index logs/           which words are in which file
  tamis grep logs.index 8f14e45fceea167a    find one, opening only files that may have it
  tamis check --keys upper known.bloom sha1.txt    ask another system's filter")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(cmd::dedup::Args),
    Plan(cmd::plan::Args),
    #[cfg(feature = "compare")]
    Compare(cmd::compare::Args),
    #[cfg(feature = "compare")]
    #[command(hide = true)]
    CompareStep(cmd::compare::StepArgs),
    Create(cmd::create::Args),
    Build(cmd::build::Args),
    Add(cmd::add::Args),
    Check(cmd::check::Args),
    Remove(cmd::remove::Args),
    Count(cmd::count::Args),
    Index(cmd::index::Args),
    Which(cmd::which::Args),
    Grep(cmd::grep::Args),
    Bloom(cmd::bloom::Args),
    Info(cmd::info::Args),
    Verify(cmd::verify::Args),
    Merge(cmd::merge::Args),
    Copy(cmd::copy::Args),
    Delete(cmd::delete::Args),
    List(cmd::list::Args),
    Gc(cmd::gc::Args),
    Export(cmd::export::Args),
    Import(cmd::import::Args),
    #[cfg(feature = "serve")]
    Serve(cmd::serve::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

/// How a command that worked ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Something was found, or the work is done.
    Done,
    /// Nothing was found, as grep says it.
    NoneFound,
    /// Some input could not be read, as reported; the rest was.
    InputFailed,
    /// A signal ended the work early; what was done is saved.
    Interrupted(i32),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        Command::Dedup(args) => cmd::dedup::run(args),
        Command::Plan(args) => cmd::plan::run(args),
        #[cfg(feature = "compare")]
        Command::Compare(args) => cmd::compare::run(args),
        #[cfg(feature = "compare")]
        Command::CompareStep(args) => cmd::compare::run_step(args),
        Command::Create(args) => cmd::create::run(args),
        Command::Build(args) => cmd::build::run(args),
        Command::Add(args) => cmd::add::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::Remove(args) => cmd::remove::run(args),
        Command::Count(args) => cmd::count::run(args),
        Command::Index(args) => cmd::index::run(args),
        Command::Which(args) => cmd::which::run(args),
        Command::Grep(args) => cmd::grep::run(args),
        Command::Bloom(args) => cmd::bloom::run(args),
        Command::Info(args) => cmd::info::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Merge(args) => cmd::merge::run(args),
        Command::Copy(args) => cmd::copy::run(args),
        Command::Delete(args) => cmd::delete::run(args),
        Command::List(args) => cmd::list::run(args),
        Command::Gc(args) => cmd::gc::run(args),
        Command::Export(args) => cmd::export::run(args),
        Command::Import(args) => cmd::import::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => cmd::serve::run(args),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
    };
    match result {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::NoneFound) => ExitCode::from(1),
        Ok(Exit::InputFailed) => ExitCode::from(2),
        Ok(Exit::Interrupted(signal)) => ExitCode::from(128 + signal as u8),
        // The reader went away, as in `| head`: that is an end, not an error.
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Says what is wrong with the arguments, and nothing of a password that is among them.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let hidden = output::hide_passwords(&text);
    match hidden == text {
        true => error.exit(),
        false => {
            eprint!("{hidden}");
            ExitCode::from(2)
        }
    }
}
