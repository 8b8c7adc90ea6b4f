//! The `tamis` command, with one file per subcommand under `cmd/`.

#[macro_use]
mod output;

mod apart;
mod bar;
mod bitmap;
mod cmd;
#[cfg(feature = "compare")]
mod compare;

mod estimate;
mod find;
mod foreign;
mod help;
mod index;
mod location;
mod lock;
mod present;
mod redisson;
mod remote;
mod source;
mod stdout;
mod stream;
mod surface;
mod window;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;
use surface::in_groups;
use tamis_report::{about, advice, human};

/// Have I seen this key before?
///
/// Filters that answer from a few bits per key: never a false "no", and a false
/// "yes" only at the rate you ask for.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(after_long_help = after_help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Exit codes: 0 a key was found or the work is done, 1 no key was found, 2 an error.

Examples:
  tamis dedup urls.txt                      each distinct line once
  tamis clean corpus/ -o cleaned/           each document of a corpus once
  tamis plan --capacity 10M -p 0.001        what would it cost?
  tamis compare urls.txt                    which is best for these keys?
  tamis create seen.tamis --capacity 10M    make a filter
  tamis add seen.tamis urls.txt             add keys, one per line
  tamis build words.tamis words.txt         a smaller filter, for a finished list
  tamis check seen.tamis candidates.txt     print the keys that may be in it
  tamis check -v seen.tamis candidates.txt  print the keys that certainly are not
  tamis index logs.index logs/              which words are in which file
  tamis grep 8f14e45fceea167a logs.index    find one, opening only files that may have it
  tamis check --format keys=upper known.bloom sha1.txt    ask another system's filter";

/// The commands and features that this build lacks.
fn lacking() -> Vec<&'static str> {
    let parts = [
        ("clean", cfg!(feature = "clean")),
        ("compare", cfg!(feature = "compare")),
        ("serve", cfg!(feature = "serve")),
        ("parquet", cfg!(feature = "parquet")),
        ("TLS", cfg!(feature = "tls")),
    ];
    let lacking = parts.into_iter().filter(|(_, is_there)| !is_there);
    lacking.map(|(name, _)| name).collect()
}

/// Examples for this build, and what it lacks.
fn after_help() -> String {
    let lacking = lacking();
    let is_there = |line: &&str| {
        let command = line.trim_start().strip_prefix("tamis ");
        let command = command.and_then(|rest| rest.split(' ').next());
        !command.is_some_and(|command| lacking.contains(&command))
    };
    let lines: Vec<&str> = EXAMPLES.lines().filter(is_there).collect();
    let mut text = lines.join("\n");
    if !lacking.is_empty() {
        text += &format!(
            "\n\nThis build has no {}.\n{FULL_BUILD}",
            lacking.join(", ")
        );
    }
    text
}

#[derive(Subcommand)]
enum Command {
    Dedup(cmd::dedup::Args),
    #[cfg(feature = "clean")]
    Clean(Box<cmd::clean::Args>),
    #[cfg(not(feature = "clean"))]
    #[command(hide = true)]
    Clean(cmd::absent::Args),
    Plan(cmd::plan::Args),
    #[cfg(feature = "compare")]
    Compare(cmd::compare::Args),
    #[cfg(not(feature = "compare"))]
    #[command(hide = true)]
    Compare(cmd::absent::Args),
    #[cfg(feature = "compare")]
    #[command(hide = true)]
    CompareStep(cmd::compare::StepArgs),
    Create(cmd::create::Args),
    Build(cmd::build::Args),
    Add(cmd::add::Args),
    Check(cmd::check::Args),
    Remove(cmd::remove::Args),
    Index(cmd::index::Args),
    Grep(cmd::grep::Args),
    #[cfg(feature = "parquet")]
    Parquet(cmd::parquet::Args),
    #[cfg(not(feature = "parquet"))]
    #[command(hide = true)]
    Parquet(cmd::absent::Args),
    Explain(cmd::explain::Args),
    Info(cmd::info::Args),
    Verify(cmd::verify::Args),
    Merge(cmd::merge::Args),
    Copy(cmd::copy::Args),
    List(cmd::list::Args),
    Drop(cmd::drop::Args),
    #[cfg(feature = "serve")]
    Serve(cmd::serve::Args),
    #[cfg(not(feature = "serve"))]
    #[command(hide = true)]
    Serve(cmd::absent::Args),
    #[command(hide = true)]
    Completions(cmd::completions::Args),
    #[command(hide = true)]
    Man(cmd::man::Args),
    #[command(hide = true)]
    Help(help::Args),
}

/// A hint for users whose build lacks something.
const FULL_BUILD: &str =
    "hint: `cargo install --path crates/tamis-cli --features full` installs everything";

/// The exit of a command that worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Something was found, or the work is done.
    Done,
    /// Nothing was found; the same exit code as grep's.
    NoneFound,
    /// Some input could not be read and was reported; the rest was processed.
    InputFailed,
    /// A signal ended the work early; finished work is saved.
    Interrupted(i32),
}

fn main() -> ExitCode {
    // With SIGXFSZ ignored, exceeding the file size limit is an error like a full disk, which we can report and clean
    // up after.
    #[cfg(unix)]
    // SAFETY: no handler is installed.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    let cli = in_groups(Cli::command())
        .try_get_matches()
        .and_then(|mut found| Cli::from_arg_matches_mut(&mut found));
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => return refuse(error),
    };
    let result = match cli.command {
        Command::Dedup(args) => cmd::dedup::run(args),
        #[cfg(feature = "clean")]
        Command::Clean(args) => cmd::clean::run(*args),
        #[cfg(not(feature = "clean"))]
        Command::Clean(_) => cmd::absent::run("clean"),
        Command::Plan(args) => cmd::plan::run(args),
        #[cfg(feature = "compare")]
        Command::Compare(args) => cmd::compare::run(args),
        #[cfg(not(feature = "compare"))]
        Command::Compare(_) => cmd::absent::run("compare"),
        #[cfg(feature = "compare")]
        Command::CompareStep(args) => cmd::compare::run_step(args),
        Command::Create(args) => cmd::create::run(args),
        Command::Build(args) => cmd::build::run(args),
        Command::Add(args) => cmd::add::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::Remove(args) => cmd::remove::run(args),
        Command::Index(args) => cmd::index::run(args),
        Command::Grep(args) => cmd::grep::run(args),
        #[cfg(feature = "parquet")]
        Command::Parquet(args) => cmd::parquet::run(args),
        #[cfg(not(feature = "parquet"))]
        Command::Parquet(_) => cmd::absent::run("parquet"),
        Command::Explain(args) => cmd::explain::run(args),
        Command::Info(args) => cmd::info::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Merge(args) => cmd::merge::run(args),
        Command::Copy(args) => cmd::copy::run(args),
        Command::List(args) => cmd::list::run(args),
        Command::Drop(args) => cmd::drop::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => cmd::serve::run(args),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => cmd::absent::run("serve"),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
        Command::Help(args) => help::run(&args),
    };
    match result {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::NoneFound) => ExitCode::from(1),
        Ok(Exit::InputFailed) => ExitCode::from(2),
        Ok(Exit::Interrupted(signal)) => ExitCode::from(128 + signal as u8),
        // The reader closed the pipe, as in `| head`. That isn't an error.
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Suggests what to use instead of an unknown option.
fn advise(error: &mut clap::Error) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    // If a file has the option's name, clap's own advice is right.
    if Path::new(option).exists() {
        return;
    }
    let command = std::env::args().nth(1).unwrap_or_default();
    let advice = match (command.as_str(), option.as_str()) {
        (option, _) if option.starts_with('-') => {
            format!("a command comes first, e.g. tamis plan {option}; `tamis --help` lists them")
        }
        ("grep", "-r" | "-R" | "--recursive") => {
            "an index knows its folders: `tamis index INDEX FOLDER` makes one".into()
        }
        ("grep", "-z" | "-a" | "--search-zip" | "--text") => {
            "compressed files and binary ones are searched anyway".into()
        }
        ("grep", "-P") => "-E takes regular expressions, without look-around".into(),
        (_, "-r" | "--recursive") => "a folder is read with all files in it".into(),
        (_, "--csv" | "--tsv" | "--jsonl" | "--field") => {
            format!(
                "-k says what a key is: -k {}:…; `tamis help keys`",
                option.trim_start_matches('-')
            )
        }
        ("dedup", "-d" | "--repeated") => "-v prints the duplicates, each but its first".into(),
        ("dedup", "-w" | "-s" | "-f") => {
            "-k says what of a line is its key: `tamis help keys`".into()
        }
        (command, _) => format!("`tamis {command} --help` lists the options"),
    };
    let advice = vec![clap::builder::StyledStr::from(advice)];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(advice));
}

/// Reports invalid arguments without repeating any password in them.
fn refuse(mut error: clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::UnknownArgument {
        advise(&mut error);
    }
    let text = error.render().to_string();
    let hidden = tamis_redis::hide_passwords(&text);
    if human::printable(&hidden) == text {
        error.exit()
    } else {
        say!("{}", hidden.trim_end());
        ExitCode::from(2)
    }
}
