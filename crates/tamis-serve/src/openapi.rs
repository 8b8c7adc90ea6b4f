//! The description of the service, for programs that make clients of it.

use crate::{App, page};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::Value;
use std::borrow::Cow;

const DESCRIPTION: &str = include_str!("openapi.json");

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/v1/openapi.json", get(description))
}

async fn description(State(app): State<App>) -> impl IntoResponse {
    let description = match app.has_page {
        true => Cow::Borrowed(DESCRIPTION),
        false => Cow::Owned(without_page()),
    };
    ([(header::CONTENT_TYPE, "application/json")], description)
}

/// The description without what is there for the page.
fn without_page() -> String {
    let description = serde_json::from_str::<Value>(DESCRIPTION);
    let mut description = description.unwrap_or_default();
    if let Some(paths) = description["paths"].as_object_mut() {
        paths.retain(|path, _| !page::PATHS.contains(&path.as_str()));
    }
    description.to_string()
}

#[cfg(test)]
mod tests {
    use super::DESCRIPTION;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// The paths of every `.route("...", ` in the service's sources, but for the page's files.
    fn routes() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = BTreeSet::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = fs::read_to_string(path).unwrap();
                    let quoted = text.split(".route(").skip(1);
                    found.extend(quoted.filter_map(|rest| {
                        let path = rest.trim_start().strip_prefix('"')?.split('"').next()?;
                        Some(path.to_owned())
                    }));
                }
            }
        }
        found.retain(|path| {
            let others = ["/metrics", "/healthz", "/readyz"];
            path.starts_with("/v1/") || others.contains(&path.as_str())
        });
        found
    }

    #[test]
    fn every_route_is_described_and_every_description_is_a_route() {
        let description: serde_json::Value = serde_json::from_str(DESCRIPTION).unwrap();
        let described = description["paths"].as_object().unwrap().keys();
        let described: BTreeSet<String> = described.cloned().collect();
        assert_eq!(described, routes());
        assert!(described.contains("/v1/filters/{name}/check"));
    }
}
