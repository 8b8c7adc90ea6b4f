//! A substitute for SQLite on systems other than Unix.

use super::report::Step;
use super::work::{Unfit, Work};
use anyhow::Result;

pub(super) fn build(_: &Work) -> Result<Step> {
    Err(Unfit("SQLite is compared on Unix alone".into()).into())
}

pub(super) fn ask(work: &Work) -> Result<Step> {
    build(work)
}
