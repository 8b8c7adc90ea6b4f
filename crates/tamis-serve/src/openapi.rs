//! The OpenAPI description of the service, for generating clients.

use bytes::Bytes;
use serde_json::Value;

const DESCRIPTION: &str = include_str!("openapi.json");
/// Described paths that only serve the page.
const OF_PAGE: [&str; 3] = ["/v1/plan", "/v1/playground", "/v1/why"];

pub(crate) fn description(has_page: bool) -> Bytes {
    if has_page {
        return Bytes::from_static(DESCRIPTION.as_bytes());
    }
    let mut description = serde_json::from_str::<Value>(DESCRIPTION).unwrap_or_default();
    if let Some(paths) = description["paths"].as_object_mut() {
        paths.retain(|path, _| !OF_PAGE.contains(&path.as_str()));
    }
    description.to_string().into()
}
