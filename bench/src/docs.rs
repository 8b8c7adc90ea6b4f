//! What docs/ says of the results: docs/benchmarks.md, its charts, and the picture of README.

use crate::chart;
use crate::report::{Suite, results, root};
use std::fs;
use std::path::PathBuf;

/// Puts every result into its place in docs/benchmarks.md, between
/// `<!-- NAME -->` and `<!-- /NAME -->`, and draws its chart beside it.
pub fn write() -> Result<(), String> {
    for (path, text) in drawn().map_err(|e| e.to_string())? {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Whether the page and its charts are what the results say.
pub fn check() -> Result<(), String> {
    for (path, text) in drawn().map_err(|e| e.to_string())? {
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            let path = path.display();
            return Err(format!(
                "{path} is not drawn from bench/results: run `report`"
            ));
        }
    }
    Ok(())
}

/// The page and its charts, and README's: where they lie, and what they say.
fn drawn() -> Result<Vec<(PathBuf, String)>, Box<dyn std::error::Error>> {
    let docs = root().join("docs");
    let page = docs.join("benchmarks.md");
    let mut text = fs::read_to_string(&page)?;
    let (mut files, mut suites) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(results())? {
        let path = entry?.path();
        let named = |e| format!("{}: {e}", path.display());
        let suite: Suite = serde_json::from_slice(&fs::read(&path)?).map_err(named)?;
        let name = &suite.name;
        let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let at = text.find(&open).map(|at| at + open.len());
        let (Some(at), Some(end)) = (at, text.find(&close)) else {
            return Err(format!("docs/benchmarks.md has no {}", open.trim()).into());
        };
        text.replace_range(at..end, &section(&suite));
        let chart = docs.join(format!("benchmarks-{name}.svg"));
        files.push((chart, chart::of_suite(&suite)));
        suites.push(suite);
    }
    files.push((page, text));
    files.push((docs.join("readme-speed.svg"), chart::of_readme(&suites)?));
    Ok(files)
}

/// A suite's part of docs/benchmarks.md.
fn section(suite: &Suite) -> String {
    let Suite {
        name,
        title,
        command,
        machine,
        ..
    } = suite;
    format!(
        "```\n{command}\n```\nOn: {machine}.\n\n{}\n![{title}: times as multiples of Tamis's](benchmarks-{name}.svg)\n",
        suite.table()
    )
}
