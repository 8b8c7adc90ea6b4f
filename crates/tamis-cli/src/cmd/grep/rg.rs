//! ripgrep options that people and scripts know.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// An option of ripgrep.
struct Known {
    long: &'static str,
    short: Option<char>,
    takes_value: bool,
    /// Why it is refused; none if `tamis grep` does so anyway.
    refused: Option<&'static str>,
}

const fn taken(long: &'static str, short: Option<char>) -> Known {
    Known {
        long,
        short,
        takes_value: false,
        refused: None,
    }
}

const fn refused(long: &'static str, short: Option<char>, why: &'static str) -> Known {
    Known {
        long,
        short,
        takes_value: false,
        refused: Some(why),
    }
}

impl Known {
    const fn with_value(self) -> Self {
        Self {
            takes_value: true,
            ..self
        }
    }

    fn arg(&self) -> Arg {
        let action = if self.takes_value {
            ArgAction::Append
        } else {
            ArgAction::Count
        };
        let arg = Arg::new(self.long).long(self.long).action(action);
        match self.short {
            Some(short) => arg.short(short),
            None => arg,
        }
        .hide(true)
    }

    fn is_given(&self, matches: &ArgMatches) -> bool {
        if self.takes_value {
            matches.contains_id(self.long)
        } else {
            matches.get_count(self.long) > 0
        }
    }
}

const KNOWN: [Known; 13] = [
    taken("search-zip", Some('z')),
    taken("text", Some('a')),
    taken("hidden", Some('.')),
    taken("no-ignore", None),
    taken("unrestricted", Some('u')),
    refused(
        "follow",
        None,
        "which links are followed was decided when the index was made: those to files are\n\
         hint: --watch goes on and prints what is appended",
    ),
    refused("multiline", Some('U'), "a match lies within a line"),
    refused(
        "pcre2",
        Some('P'),
        "expressions are those of Rust's regex, without look-around and backreferences",
    ),
    refused(
        "replace",
        Some('r'),
        "lines are printed as they are\nhint: pipe them to sed",
    )
    .with_value(),
    refused(
        "vimgrep",
        None,
        "a line is printed once\nhint: -n --column --no-heading has the place of its first match",
    ),
    refused(
        "trim",
        None,
        "lines are printed as they are\nhint: pipe them to sed",
    ),
    refused("passthru", None, "lines without a match are not read"),
    refused(
        "max-depth",
        Some('d'),
        "an index has all depths of its folders\nhint: -g '!*/*/*' leaves out what is deeper",
    )
    .with_value(),
];

/// ripgrep options that `tamis grep` accepts or refuses but doesn't use.
pub(super) struct RgOptions {
    refused: Option<&'static Known>,
}

impl RgOptions {
    /// An error if an option asks for something unsupported.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(Known { long, refused, .. }) = self.refused {
            bail!("--{long}, as in ripgrep: {}", refused.unwrap_or_default());
        }
        Ok(())
    }
}

impl clap::FromArgMatches for RgOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = KNOWN.iter().filter(|known| known.is_given(matches));
        Ok(Self {
            refused: given.find(|known| known.refused.is_some()),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for RgOptions {
    fn augment_args(command: Command) -> Command {
        command.args(KNOWN.iter().map(Known::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
