//! Metrics of the service, for Prometheus.

use crate::filters::{Filters, PATIENCE, Served, seconds};
use crate::log::log;
use crate::response::{Response, whole};
use hyper::StatusCode;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tamis_report::human;

/// Upper bounds of the histogram of response times.
const SECONDS: [f64; 8] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];
/// How often the log mentions requests without the token.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Counts for all filters together.
#[derive(Default)]
pub(crate) struct Metrics {
    /// By the first digit of the status.
    statuses: [AtomicU64; 6],
    /// By time; the last class has no upper bound.
    times: [AtomicU64; SECONDS.len() + 1],
    nanoseconds: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) strangers: Strangers,
}

/// Requests with a missing or wrong token.
#[derive(Default)]
pub(crate) struct Strangers {
    all: AtomicU64,
    /// When the log last mentioned them, and their number then.
    told: Mutex<Option<(Instant, u64)>>,
}

impl Strangers {
    /// Counts one, and logs it unless the log did so recently.
    pub(crate) fn seen(&self, from: IpAddr) {
        let all = self.all.fetch_add(1, Relaxed) + 1;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *told {
            Some((at, _)) if at.elapsed() < TELL_EVERY => return,
            Some((_, before)) => before,
            None => 0,
        };
        *told = Some((Instant::now(), all));
        let new = human::counted(all.saturating_sub(before), "request");
        log(format_args!(
            "{new} without the token or with a wrong one, the last from {from}"
        ));
    }
}

impl Metrics {
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100);
        self.statuses[class.min(self.statuses.len() - 1)].fetch_add(1, Relaxed);
        let seconds = took.as_secs_f64();
        let class = SECONDS.partition_point(|&end| end < seconds);
        self.times[class].fetch_add(1, Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

/// Everything that Prometheus collects.
pub(crate) async fn page(metrics: &Metrics, filters: &Filters) -> Response {
    let mut page = Page::default();
    page.add_requests(metrics);
    page.add_filters(filters);
    page.add_content(filters).await;
    whole("text/plain; version=0.0.4; charset=utf-8", page.0)
}

/// The text format, version 0.0.4. Names of filters need no escapes.
#[derive(Default)]
struct Page(String);

/// A figure of a filter, if it has one.
type Figure = fn(&Served) -> Option<f64>;

/// Values that are known for every filter at any time.
const FIGURES: [(&str, &str, &str, Figure); 5] = [
    (
        "tamis_filter_unsaved_keys",
        "gauge",
        "Keys that were added and are not on disk.",
        |served| Some(served.saving()?.unsaved_keys as f64),
    ),
    (
        "tamis_filter_last_saved_at",
        "gauge",
        "When additions were last saved, since 1970.",
        |served| Some(seconds(served.saving()?.at?) as f64),
    ),
    (
        "tamis_filter_save_failed",
        "gauge",
        "1 if the last save failed: nothing is added until one succeeds.",
        |served| Some(one_if(served.saving()?.error.is_some())),
    ),
    (
        "tamis_filter_fault",
        "gauge",
        "1 if the file in place can't be served, and an older one is.",
        |served| Some(one_if(served.fault().is_some())),
    ),
    (
        "tamis_filter_replaced_total",
        "counter",
        "How often another file was taken.",
        |served| Some(served.times_replaced() as f64),
    ),
];

/// Values that take reading the filter: fields of its description.
const CONTENT: [(&str, &str, &str); 6] = [
    ("tamis_filter_keys", "keys", "Keys in the filter."),
    ("tamis_filter_capacity", "capacity", "Keys it was made for."),
    (
        "tamis_filter_rate",
        "rate",
        "The promised rate of false \"yes\" answers.",
    ),
    (
        "tamis_filter_rate_now",
        "rate_now",
        "The expected rate of false \"yes\" answers now.",
    ),
    ("tamis_filter_bytes", "bytes", "The size of the filter."),
    (
        "tamis_filter_loaded_at",
        "loaded_at",
        "When its file was read, since 1970.",
    ),
];

fn one_if(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

fn label(served: &Served) -> String {
    format!("filter=\"{}\"", served.name())
}

impl Page {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn add_requests(&mut self, metrics: &Metrics) {
        let load = |count: &AtomicU64| count.load(Relaxed) as f64;
        self.about("tamis_requests_total", "counter", "Requests, by status.");
        for (class, count) in metrics.statuses.iter().enumerate().skip(1) {
            let labels = format!("status=\"{class}xx\"");
            self.sample("tamis_requests_total", &labels, load(count));
        }
        let help = "Time from a request's head to its response.";
        self.about("tamis_request_seconds", "histogram", help);
        let mut sum = 0.0;
        for (class, count) in metrics.times.iter().enumerate() {
            sum += load(count);
            let end = SECONDS.get(class).map_or("+Inf".to_owned(), f64::to_string);
            let labels = format!("le=\"{end}\"");
            self.sample("tamis_request_seconds_bucket", &labels, sum);
        }
        let seconds = load(&metrics.nanoseconds) / 1e9;
        self.sample("tamis_request_seconds_sum", "", seconds);
        self.sample("tamis_request_seconds_count", "", sum);
        for (name, kind, help, count) in [
            (
                "tamis_connections",
                "gauge",
                "Open connections.",
                &metrics.connections,
            ),
            (
                "tamis_connections_refused_total",
                "counter",
                "Connections above --max-connections.",
                &metrics.refused_connections,
            ),
            (
                "tamis_unauthorized_total",
                "counter",
                "Requests without the token that they need.",
                &metrics.strangers.all,
            ),
        ] {
            self.about(name, kind, help);
            self.sample(name, "", load(count));
        }
    }

    fn add_filters(&mut self, filters: &Filters) {
        let name = "tamis_keys_total";
        self.about(name, "counter", "Keys asked for and added, by answer.");
        for served in filters.iter() {
            for (answer, count) in served.tally.all().named() {
                let labels = format!("{},answer=\"{answer}\"", label(served));
                self.sample(name, &labels, count as f64);
            }
        }
        for (name, kind, help, figure) in FIGURES {
            self.about(name, kind, help);
            for served in filters.iter() {
                if let Some(value) = figure(served) {
                    self.sample(name, &label(served), value);
                }
            }
        }
    }

    async fn add_content(&mut self, filters: &Filters) {
        let mut told = Vec::new();
        for served in filters.iter() {
            if let Ok(Ok(about)) = tokio::time::timeout(PATIENCE, served.about(false)).await {
                told.push((label(served), about));
            }
        }
        for (name, field, help) in CONTENT {
            self.about(name, "gauge", help);
            for (label, about) in &told {
                if let Some(value) = about.get(field).and_then(Value::as_f64) {
                    self.sample(name, label, value);
                }
            }
        }
    }
}
