//! Options of new filters.

use crate::arguments::read;
use crate::secret::Secret;
use crate::status::Failure;
use std::time::Duration;
use tamis::{
    Hasher, KeyRule,
    window::{Renewal, Span, WindowOptions},
};

/// The secret is not stored in the file: whoever opens it must have it.
pub const TAMIS_SECRET_APART: u32 = 1;
/// Case makes no difference: that of Unicode letters in keys that are UTF-8, else that of ASCII letters.
pub const TAMIS_IGNORE_CASE: u32 = 2;
/// Keys that are URLs are normalised.
pub const TAMIS_URL: u32 = 4;
/// Of a window: every sighting of a key renews it.
pub const TAMIS_QUIET: u32 = 8;

const ALL_FLAGS: u32 = TAMIS_SECRET_APART | TAMIS_IGNORE_CASE | TAMIS_URL | TAMIS_QUIET;

/// Which list wins when a key is on both lists of a cascade.
#[repr(C)]
#[allow(non_camel_case_types)]
pub enum Both {
    /// None: it is an error.
    TAMIS_BOTH_REFUSE = 0,
    /// The key is blocked.
    TAMIS_BOTH_BLOCK = 1,
    /// The key is allowed.
    TAMIS_BOTH_ALLOW = 2,
}

/// Options of a new filter or list. All zeros, `{0}`, are the defaults, and so is NULL.
#[repr(C)]
pub struct Options {
    /// Distinguishes filters; it offers no protection.
    pub seed: u64,
    /// Against keys that an adversary may choose; NULL for none. Then there is no seed.
    pub secret: *const Secret,
    /// TAMIS_SECRET_APART, TAMIS_IGNORE_CASE, TAMIS_URL, TAMIS_QUIET, added up.
    pub flags: u32,
    /// How many values a key is made of, by tamis_join; 0 is 1.
    pub values: u32,
    /// Of a window: the time that it spans, in microseconds; 0 if it spans so many keys as it is made for.
    pub window_micros: u64,
    /// Of a window: in how many generations it is divided, 1 to 62; 0 is 8.
    pub generations: u32,
    /// Of a cascade: one of tamis_both.
    pub both: u32,
    /// Of a list: the memory that it takes, about, in bytes; the rest goes to a temporary file. 0 is no limit.
    pub memory: u64,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// Options that C gave, in order.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) hasher: Hasher,
    window: Option<Duration>,
    generations: Option<u32>,
    quiet: bool,
    pub(crate) both: tamis::internals::Both,
    pub(crate) memory: Option<u64>,
}

fn refuse(what: &str, expected: &str, got: impl std::fmt::Display) -> Failure {
    Failure::argument(format!("{what}: expected {expected}, got {got}"))
}

impl Given {
    /// # Safety
    /// As for [`read`], also for the secret.
    pub(crate) unsafe fn read(options: *const Options) -> Result<Self, Failure> {
        if options.is_null() {
            return Ok(Self::default());
        }
        // SAFETY: as above.
        let options = unsafe { read(options, "options")? };
        // SAFETY: as above.
        let secret = unsafe { options.secret.as_ref() }.map(Secret::key);
        let has = |flag| options.flags & flag != 0;
        if options.flags & !ALL_FLAGS != 0 || options.reserved != [0; 4] {
            return Err(refuse(
                "options",
                "flags that this library knows, and zeros in what is reserved",
                format_args!("flags {:#x}; begin with {{0}}", options.flags),
            ));
        }
        let hasher = match secret {
            None if has(TAMIS_SECRET_APART) => {
                return Err(refuse("options.secret", "a secret to keep apart", "NULL"));
            }
            None => Hasher::seeded(options.seed),
            Some(_) if options.seed != 0 => {
                return Err(refuse("options.seed", "0 with a secret", options.seed));
            }
            Some(secret) if has(TAMIS_SECRET_APART) => Hasher::keyed_apart(secret),
            Some(secret) => Hasher::keyed(secret),
        };
        let mut rule = KeyRule::EXACT;
        if has(TAMIS_IGNORE_CASE) {
            rule = rule.ignore_case();
        }
        if has(TAMIS_URL) {
            rule = rule.url();
        }
        let rule = rule
            .of_values(options.values.max(1) as usize)
            .ok_or_else(|| refuse("options.values", "1 to 255", options.values))?;
        let given = |number: u64| (number != 0).then_some(number);
        Ok(Self {
            hasher: hasher.with_rule(rule),
            window: given(options.window_micros).map(Duration::from_micros),
            generations: (options.generations != 0).then_some(options.generations),
            quiet: has(TAMIS_QUIET),
            both: match options.both {
                0 => tamis::internals::Both::Refuse,
                1 => tamis::internals::Both::Block,
                2 => tamis::internals::Both::Allow,
                other => return Err(refuse("options.both", "one of tamis_both", other)),
            },
            memory: given(options.memory),
        })
    }

    /// What a window of so many keys remembers; an error if options of windows were given for another kind.
    pub(crate) fn window(
        &self,
        kind: tamis::Kind,
        keys: u64,
    ) -> Result<Option<WindowOptions>, Failure> {
        if kind != tamis::Kind::Window {
            return match (self.window, self.generations, self.quiet) {
                (None, None, false) => Ok(None),
                _ => Err(refuse(
                    "kind",
                    "a window, because options of windows were given",
                    kind,
                )),
            };
        }
        let mut options = WindowOptions::new(self.window.map_or(Span::Keys(keys), Span::Time));
        if let Some(generations) = self.generations {
            options = options.generations(generations);
        }
        if self.quiet {
            options = options.renewal(Renewal::Quiet);
        }
        Ok(Some(options))
    }
}
