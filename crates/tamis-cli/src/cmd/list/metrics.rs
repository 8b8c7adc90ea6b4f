//! A survey of servers in Prometheus's text format.

use crate::human;
use std::fmt::{Display, Write as _};
use std::time::Duration;
use tamis_redis::{Found, Node, Survey};

/// All metrics of a survey.
pub(super) fn page(survey: &Survey) -> String {
    let mut page = Page::default();
    tell_filters(&survey.filters, &mut page);
    tell_nodes(&survey.nodes, &mut page);
    tell_modules(&survey.nodes, &mut page);
    page.gauge(
        "tamis_orphans",
        "Parts of filters that are gone.",
        [(String::new(), survey.orphans.len() as f64)],
    );
    let bytes: u64 = survey.orphans.iter().map(|orphan| orphan.bytes).sum();
    page.gauge(
        "tamis_orphan_bytes",
        "Memory of these parts.",
        [(String::new(), bytes as f64)],
    );
    page.0
}

fn tell_filters(filters: &[Found], page: &mut Page) {
    let mut each = |name: &str, help: &str, value: &dyn Fn(&Found) -> Option<f64>| {
        let samples = filters
            .iter()
            .filter_map(|filter| Some((label("filter", &filter.name), value(filter)?)));
        page.gauge(name, help, samples);
    };
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    each("tamis_filter_keys", "Keys, estimated.", &|it| {
        Some(it.keys? as f64)
    });
    each(
        "tamis_filter_capacity",
        "Keys that it is made for.",
        &|it| it.kind.map(|_| it.capacity as f64),
    );
    each(
        "tamis_filter_fill_ratio",
        "Keys divided by those that it is made for; above 1 it is overfull.",
        &Found::fill,
    );
    each("tamis_filter_rate_promised", "The promised rate.", &|it| {
        it.kind.map(|_| it.rate)
    });
    each("tamis_filter_rate_now", "The rate to expect now.", &|it| {
        it.rate_now
    });
    each("tamis_filter_bytes", "Memory on all servers.", &|it| {
        Some(it.bytes() as f64)
    });
    each(
        "tamis_filter_last_write_seconds",
        "Time since keys were last added or removed.",
        &|it| seconds(it.last_write),
    );
    each(
        "tamis_filter_time_to_live_seconds",
        "Time until it expires.",
        &|it| seconds(it.time_to_live),
    );
    let states = filters.iter().map(|filter| {
        let state = label("state", &filter.condition.to_string());
        (format!("{},{state}", label("filter", &filter.name)), 1.0)
    });
    let help = "1 for the state that it is in: whole, overfull, damaged, ...";
    page.gauge("tamis_filter_state", help, states);
}

fn tell_nodes(nodes: &[Node], page: &mut Page) {
    let mut each = |name: &str, help: &str, value: &dyn Fn(&Node) -> Option<f64>| {
        let samples = nodes
            .iter()
            .filter_map(|node| Some((label("server", &node.address), value(node)?)));
        page.gauge(name, help, samples);
    };
    each("tamis_server_up", "Whether it can be asked.", &|node| {
        Some(f64::from(node.unreachable.is_none()))
    });
    // Unknown if the user lacks the permission.
    each("tamis_server_used_bytes", "Memory in use.", &|node| {
        (!node.version.is_empty()).then_some(node.used as f64)
    });
    each(
        "tamis_server_max_bytes",
        "The most memory that it may use; 0 means no limit.",
        &|node| (!node.version.is_empty()).then_some(node.most as f64),
    );
    each(
        "tamis_server_is_master",
        "Whether it is a master.",
        &|node| {
            let known = !node.role.is_empty();
            known.then_some(f64::from(node.role == "master"))
        },
    );
    each(
        "tamis_server_replicas",
        "Replicas in step with it.",
        &|node| (node.role == "master").then_some(node.replicas as f64),
    );
    each(
        "tamis_server_link_up",
        "Of a replica, whether it is connected to its master.",
        &|node| node.link_up.map(f64::from),
    );
    each(
        "tamis_server_lag_seconds",
        "Of a replica, time without a word of its master; of a master, of its slowest replica.",
        &|node| node.lag.map(|lag| lag.as_secs_f64()),
    );
}

/// The module's counters on each server that has it. Names of counters end with `_total`.
fn tell_modules(nodes: &[Node], page: &mut Page) {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in nodes.iter().flat_map(|node| &node.module) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let samples = nodes.iter().filter_map(|node| {
            let (_, value) = node.module.iter().find(|(known, _)| known == name)?;
            Some((label("server", &node.address), *value as f64))
        });
        let help = format!("{} of the module.", name.replace('_', " "));
        if name.contains("_items_") {
            page.add(
                &format!("tamis_module_{name}_total"),
                "counter",
                &help,
                samples,
            );
        } else {
            page.gauge(&format!("tamis_module_{name}"), &help, samples);
        }
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
        self.add(name, "gauge", help, samples);
    }

    fn add(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = if labels.is_empty() {
                writeln!(self.0, "{name} {value}")
            } else {
                writeln!(self.0, "{name}{{{labels}}} {value}")
            };
        }
    }
}

/// Prometheus only knows three escapes.
fn label(name: &str, value: &(impl Display + ?Sized)) -> String {
    let value = value.to_string();
    let printable = human::printable(&value);
    let escaped = printable.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{name}=\"{}\"", escaped.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(label("filter", "a\"b\\c\nd"), r#"filter="a\"b\\c\nd""#);
        assert_eq!(label("filter", "\x1b\r\t"), "filter=\"\\\\u001b\\\\r\t\"");
    }
}
