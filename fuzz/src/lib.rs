//! The fuzz targets. [`TARGETS`] names them; one program runs them all.

mod arrow;
mod filters;
mod foreign;
mod index;
mod memory;
mod module;
mod pybloomfilter;
mod records;
mod redis_record;
mod sequence;
mod text;

use tamis_formats::Format;

#[global_allocator]
static MEMORY: memory::Watched = memory::Watched;

/// What is done with an input.
type Run = fn(&[u8]);
/// The same, of a target that is made at run time.
pub type Target = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Every target but those of other systems' formats.
const TARGETS: [(&str, Run); 18] = [
    ("arrow", arrow::arrow),
    ("base64", filters::base64),
    ("decode", filters::decode),
    ("file", filters::file),
    ("foreign", foreign::unknown),
    ("foreign_bitmap", foreign::bitmap),
    ("foreign_redisson", foreign::redisson),
    ("index", index::index),
    ("keys", records::keys),
    ("module_loadchunk", module::loadchunk),
    ("module_rdb", module::rdb),
    ("packed_text", text::packed),
    ("patterns", text::patterns),
    ("pybloomfilter", pybloomfilter::pybloomfilter),
    ("redis_record", redis_record::redis_record),
    ("sequence", sequence::sequence),
    ("specs", records::specs),
    ("view", filters::view),
];

/// A format's target.
fn name(format: Format) -> String {
    format!("foreign_{}", format.name().replace('-', "_"))
}

/// The names of all targets.
pub fn names() -> Vec<String> {
    let formats = Format::ALL.iter().copied().map(name);
    let mut names: Vec<String> = formats
        .chain(TARGETS.iter().map(|(name, _)| name.to_string()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The target of this name.
pub fn target(wanted: &str) -> Option<Target> {
    if let Some((_, run)) = TARGETS.iter().find(|(name, _)| *name == wanted) {
        return Some(Box::new(run));
    }
    let format = *Format::ALL.iter().find(|format| name(**format) == wanted)?;
    Some(Box::new(move |data| foreign::exercise(format, data)))
}
