//! Maps paths to handlers.

use crate::problem::Problem;
use crate::response::{JSON, Response, TEXT, whole};
use crate::{App, api, body, metrics, openapi, page};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// What a path refers to.
#[derive(Clone, Copy, Debug)]
enum Endpoint {
    Health,
    Ready,
    Metrics,
    Description,
    List,
    Info,
    Check,
    Add,
    Page,
    PageFile,
    Plan,
    Playground,
    Why,
}

/// The only method of an endpoint. `GET` includes `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
}

/// Every path in the API description.
const ROUTES: [(&str, Verb, Endpoint); 13] = [
    ("/healthz", Verb::Get, Endpoint::Health),
    ("/readyz", Verb::Get, Endpoint::Ready),
    ("/metrics", Verb::Get, Endpoint::Metrics),
    ("/v1/openapi.json", Verb::Get, Endpoint::Description),
    ("/v1/filters", Verb::Get, Endpoint::List),
    ("/v1/filters/{name}", Verb::Get, Endpoint::Info),
    ("/v1/filters/{name}/check", Verb::Post, Endpoint::Check),
    ("/v1/filters/{name}/add", Verb::Post, Endpoint::Add),
    ("/", Verb::Get, Endpoint::Page),
    ("/page/{file}", Verb::Get, Endpoint::PageFile),
    ("/v1/plan", Verb::Get, Endpoint::Plan),
    ("/v1/playground", Verb::Post, Endpoint::Playground),
    ("/v1/why", Verb::Get, Endpoint::Why),
];

impl Endpoint {
    /// Whether it is open to everybody, even if reading needs a token: probes, the page, and how to use the rest.
    const fn is_open(self) -> bool {
        matches!(
            self,
            Self::Health | Self::Ready | Self::Description | Self::Page | Self::PageFile
        )
    }

    /// Whether it only serves the page.
    const fn is_of_page(self) -> bool {
        matches!(
            self,
            Self::Page | Self::PageFile | Self::Plan | Self::Playground | Self::Why
        )
    }
}

/// Whether a path matches a pattern, and the part that the pattern names.
fn fits<'p>(form: &str, path: &'p str) -> Option<&'p str> {
    let mut named = "";
    let (mut forms, mut parts) = (form.split('/'), path.split('/'));
    loop {
        match (forms.next(), parts.next()) {
            (None, None) => return Some(named),
            (Some(form), Some(part)) if form == part => {}
            (Some(form), Some(part)) if form.starts_with('{') && !part.is_empty() => named = part,
            _ => return None,
        }
    }
}

/// Answers a request that passed the checks.
pub(crate) async fn answer(app: &App, head: &Parts, body: Incoming) -> Result<Response, Problem> {
    let path = head.uri.path();
    let found = ROUTES.iter().find_map(|(form, verb, endpoint)| {
        let named = fits(form, path)?;
        (app.has_page || !endpoint.is_of_page()).then_some((verb, endpoint, named))
    });
    let Some((verb, endpoint, named)) = found else {
        let text = "there is nothing at this path";
        return Err(Problem::new(StatusCode::NOT_FOUND, text));
    };
    let (is_allowed, allowed) = match verb {
        Verb::Get => (
            matches!(head.method, Method::GET | Method::HEAD),
            "GET,HEAD",
        ),
        Verb::Post => (head.method == Method::POST, "POST"),
    };
    if !is_allowed {
        let text =
            "this path does not support this method; /v1/openapi.json lists what it supports";
        let refused = Problem::new(StatusCode::METHOD_NOT_ALLOWED, text);
        return Err(refused.with(header::ALLOW, allowed));
    }
    let (filters, budget, headers) = (&app.filters, &app.budget, &head.headers);
    // Adding needs the other token.
    if !endpoint.is_open()
        && !matches!(endpoint, Endpoint::Add)
        && let Err(refused) = app.guard.check_reader(headers)
    {
        body::leave(budget, headers, body).await;
        return Err(refused);
    }
    let is_known = app.guard.is_known(headers);
    let query = head.uri.query().unwrap_or_default();
    match endpoint {
        Endpoint::Health => Ok(whole(TEXT, "ok\n")),
        Endpoint::Ready => api::ready(filters, is_known)
            .await
            .map(|()| whole(TEXT, "ready\n")),
        Endpoint::Metrics => Ok(metrics::page(&app.metrics, filters).await),
        Endpoint::Description => Ok(whole(JSON, openapi::description(app.has_page))),
        Endpoint::List => Ok(api::list(filters, is_known).await),
        Endpoint::Info => api::info(filters, &decode(named)?, is_known).await,
        Endpoint::Check => {
            let name = decode(named)?;
            api::check(filters, &name, query, budget, headers, body).await
        }
        Endpoint::Add => {
            let name = decode(named)?;
            api::add(filters, &name, query, &app.guard, budget, headers, body).await
        }
        Endpoint::Page => page::file("index.html"),
        Endpoint::PageFile => page::file(named),
        Endpoint::Plan => page::calculate(&app.pool, query, tamis_report::page::plan).await,
        Endpoint::Playground => page::playground(&app.pool, budget, headers, body).await,
        Endpoint::Why => page::calculate(&app.pool, query, tamis_report::page::why).await,
    }
}

fn decode(name: &str) -> Result<Cow<'_, str>, Problem> {
    let decoded = percent_decode_str(name).decode_utf8();
    decoded.map_err(|error| Problem::bad_request(format!("the filter's name: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_described_and_every_description_is_a_route() {
        for has_page in [true, false] {
            let description = openapi::description(has_page);
            let description: serde_json::Value = serde_json::from_slice(&description).unwrap();
            let described = description["paths"].as_object().unwrap();
            let of_files = |endpoint| matches!(endpoint, Endpoint::Page | Endpoint::PageFile);
            let routes: BTreeSet<_> = ROUTES
                .iter()
                .filter(|(_, _, endpoint)| !of_files(*endpoint))
                .filter(|(_, _, endpoint)| has_page || !endpoint.is_of_page())
                .map(|(path, verb, _)| {
                    let methods = described.get(*path).and_then(|of| of.as_object()).unwrap();
                    let method = if *verb == Verb::Get { "get" } else { "post" };
                    assert!(methods.contains_key(method), "{method} {path}");
                    *path
                })
                .collect();
            assert_eq!(routes, described.keys().map(String::as_str).collect());
            assert!(routes.contains("/v1/filters/{name}/check"));
        }
    }

    #[test]
    fn paths_fit_as_a_whole() {
        let form = "/v1/filters/{name}/check";
        assert_eq!(fits(form, "/v1/filters/words/check"), Some("words"));
        for path in [
            "/v1/filters//check",
            "/v1/filters/words/check/",
            "/v1/filters/words",
            "/v1/filters/words/Check",
            "//v1/filters/words/check",
            "v1/filters/words/check",
            "/v1/filters/a/b/check",
            "*",
            "",
        ] {
            assert_eq!(fits(form, path), None, "{path}");
        }
        assert_eq!(fits("/", "/"), Some(""));
        assert_eq!(fits("/", ""), None);
    }
}
