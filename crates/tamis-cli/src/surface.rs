//! Arranges help: commands in groups, everyday flags in `-h`, all flags in `--help`.

use clap::Arg;

/// The most flags in `-h`.
const MOST_IN_SHORT_HELP: usize = 12;

/// The everyday flags of all commands, the most important first.
const EVERY_DAY: [&str; 37] = [
    "output",
    "filter",
    "capacity",
    "rate",
    "kind",
    "size",
    "key",
    "ignore-case",
    "url",
    "invert",
    "count",
    "quiet",
    "new",
    "tally",
    "union",
    "intersect",
    "as",
    "within",
    "time",
    "fixed-strings",
    "extended-regexp",
    "files-with-matches",
    "line-number",
    "context",
    "glob",
    "candidates",
    "since",
    "write",
    "token-file",
    "listen",
    "allow",
    "smallest",
    "format",
    "column",
    "after",
    "orphans",
    "json",
];

/// The groups of commands in `--help`.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Drop what repeats", &["dedup", "clean"]),
    (
        "Filters",
        &[
            "create", "build", "add", "check", "remove", "info", "explain", "plan", "compare",
        ],
    ),
    ("Search in files", &["index", "grep", "parquet"]),
    (
        "Keep and share",
        &["list", "copy", "merge", "verify", "drop", "serve"],
    ),
];

/// Groups the subcommands in the help, and limits `-h` of each to its everyday flags.
pub(crate) fn in_groups(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(with_few_flags);
    command.build();
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        text += &format!("\n{header}{group}:{header:#}\n");
        let known = |name: &&str| {
            command
                .find_subcommand(name)
                .filter(|known| !known.is_hide_set())
        };
        for found in names.iter().filter_map(known) {
            let (name, about) = (found.get_name(), found.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:<13}{literal:#}{about}\n");
        }
    }
    text += &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(text)
}

/// Leaves only everyday flags in `-h`, and says how many more there are.
fn with_few_flags(command: clap::Command) -> clap::Command {
    let name = |arg: &Arg| arg.get_long().map(str::to_owned);
    let flags: Vec<String> = command
        .get_arguments()
        .filter(|arg| is_flag(arg))
        .filter_map(name)
        .collect();
    let every_day = EVERY_DAY
        .iter()
        .filter(|name| flags.iter().any(|flag| flag == **name));
    let every_day: Vec<&str> = every_day.copied().take(MOST_IN_SHORT_HELP).collect();
    let others = flags.len() - every_day.len();
    if flags.len() <= MOST_IN_SHORT_HELP || others == 0 {
        return command;
    }
    let more = format!("{others} more: tamis {} --help", command.get_name());
    let has_examples = command.get_after_long_help().is_some();
    let command = command.mut_args(|arg| {
        let is_shown = arg.get_long().is_some_and(|long| every_day.contains(&long));
        if is_flag(&arg) && !is_shown {
            arg.hide_short_help(true)
        } else {
            arg
        }
    });
    let command = command.after_help(more);
    if has_examples {
        command
    } else {
        command.after_long_help("")
    }
}

/// Whether an argument is a visible flag.
fn is_flag(arg: &Arg) -> bool {
    !arg.is_positional()
        && !arg.is_hide_set()
        && !matches!(arg.get_id().as_str(), "help" | "version")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeMap;

    fn shown() -> Vec<clap::Command> {
        let mut command = Cli::command();
        command.build();
        command
            .get_subcommands()
            .filter(|known| !known.is_hide_set())
            .cloned()
            .collect()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        for known in shown() {
            let times = grouped
                .iter()
                .filter(|name| **name == known.get_name())
                .count();
            assert_eq!(times, 1, "{}", known.get_name());
        }
    }

    /// Limits the choices that users face. The numbers may only shrink: to add a flag, remove another.
    #[test]
    fn there_are_few_commands_and_flags() {
        let commands = shown();
        assert!(commands.len() <= 21, "{} commands", commands.len());
        let mut total = 0;
        let mut said = String::new();
        for command in &commands {
            let flags = command.get_arguments().filter(|arg| is_flag(arg)).count();
            said += &format!("{} {flags}, ", command.get_name());
            total += flags;
        }
        assert!(total <= 320, "{total} flags: {said}");
    }

    /// In all commands, a letter stands for one name, and a name has at most one letter.
    #[test]
    fn a_letter_means_one_thing() {
        let mut names: BTreeMap<char, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        let mut letters: BTreeMap<String, BTreeMap<char, Vec<String>>> = BTreeMap::new();
        for command in shown() {
            for arg in command.get_arguments().filter(|arg| is_flag(arg)) {
                let command = command.get_name().to_owned();
                let long = arg.get_long().expect("a flag has a name").to_owned();
                // ripgrep's -o prints only the match; elsewhere -o is the output, which grep doesn't have.
                let is_of_ripgrep = command == "grep" && long == "only-matching";
                if let Some(letter) = arg.get_short().filter(|_| !is_of_ripgrep) {
                    let names = names.entry(letter).or_default();
                    names
                        .entry(meaning(&long))
                        .or_default()
                        .push(command.clone());
                }
                if let Some(letter) = arg.get_short() {
                    let letters = letters.entry(long).or_default();
                    letters.entry(letter).or_default().push(command);
                }
            }
        }
        for (letter, names) in &names {
            assert_eq!(names.len(), 1, "-{letter} is {names:?}");
        }
        for (name, letters) in &letters {
            assert_eq!(letters.len(), 1, "--{name} has {letters:?}");
        }
    }

    /// Maps ripgrep's names to our names for the same thing.
    fn meaning(name: &str) -> String {
        match name {
            "invert-match" => "invert",
            name => name,
        }
        .to_owned()
    }

    #[test]
    fn short_help_is_short() {
        for command in in_groups(Cli::command()).get_subcommands_mut() {
            if command.is_hide_set() {
                continue;
            }
            let help = command.render_help().to_string();
            let flags = help
                .lines()
                .filter(|line| line.trim_start().starts_with('-'))
                .count();
            assert!(flags <= MOST_IN_SHORT_HELP + 1, "{}", help);
        }
    }
}
