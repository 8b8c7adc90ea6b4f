#!/usr/bin/env python3
"""Whether alerts and dashboard fit what Tamis exports: monitoring.py PAGE_OF_METRICS...

promtool checks the rules, runs their tests, and parses every query of the dashboard. The names that rules and queries use
are compared with those on the pages, which the service and `tamis list --metrics` have printed, both ways: a name that
nobody exports is an error, and so is one that no panel shows. Labels are compared as well."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
ALERTS = HERE / "prometheus/alerts.yml"
# Prometheus's own, and node_exporter's.
FOREIGN = {"up": {"job", "instance"}, "node_textfile_mtime_seconds": {"file", "job", "instance"}, "ALERTS": set()}
# What Prometheus adds to whatever it scrapes.
SCRAPED = {"job", "instance"}
KINDS = {"row", "stat", "table", "timeseries"}
problems = []


def promtool(*arguments, text=None):
    ran = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True)
    if ran.returncode != 0:
        problems.append(f"promtool {' '.join(map(str, arguments))}:\n{ran.stdout}{ran.stderr}")


def exported(pages):
    """The labels of each name on pages of metrics.

    >>> exported(["# TYPE a counter\\na{b=\\"x\\",c=\\"y\\"} 1\\nd 2\\n"]) == {"a": {"b", "c"}, "d": set()}
    True
    """
    names = {}
    for page in pages:
        for line in page.splitlines():
            if line and not line.startswith("#"):
                name, labels = re.match(r"([a-z_]+)(?:\{(.*)\})? ", line).groups()
                names.setdefault(name, set()).update(re.findall(r'(\w+)="', labels or ""))
    return names


def plain(query):
    """A dashboard's query without Grafana's variables."""
    return query.replace("$__rate_interval", "5m").replace("$job", "tamis").replace("$instance", ".*").replace("$filter", ".*")


def used(query):
    """The names of a query, and the labels that are asked of each.

    >>> used('sum by (le) (rate(a_b{c="x", d=~"y{z}"}[5m])) / on (c) tamis_e') == {"a_b": {"c", "d"}, "tamis_e": set()}
    True
    """
    found = {}
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    for name, labels in re.findall(r"\b([a-z]+_[a-z0-9_]+|up|ALERTS)\b(?!\s*\()(?:\{([^}]*)\})?", bare):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]", labels))
    return found


def check_panels(dashboard):
    """Whether Grafana could place and draw them; yields all queries."""
    places, numbers = {}, set()
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    for panel in dashboard["panels"]:
        title, place = panel["title"], panel["gridPos"]
        if panel["type"] not in KINDS:
            problems.append(f"{title}: expected one of {sorted(KINDS)}, got {panel['type']}")
        if panel["id"] in numbers:
            problems.append(f"{title}: another panel has the number {panel['id']}")
        numbers.add(panel["id"])
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if x >= 24 or (x, y) in places:
                    problems.append(f"{title}: lies on {places.get((x, y), 'the edge')}")
                places[x, y] = title
        if panel["type"] == "row":
            continue
        if not panel["targets"]:
            problems.append(f"{title}: has no query")
        for target in panel["targets"]:
            for name in re.findall(r"\$\{?(\w+)", target["expr"] + target["datasource"]["uid"]):
                if name not in variables and not name.startswith("__"):
                    problems.append(f"{title}: there is no variable {name}")
            yield f"panel {title!r}", plain(target["expr"])


def check_names(queries, names):
    shown = set()
    for where, query in queries:
        for name, labels in used(query).items():
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            shown |= {name, base}
            known = FOREIGN.get(name, names.get(name))
            if known is None:
                problems.append(f"{where}: nobody exports {name}")
            elif labels - known - SCRAPED:
                problems.append(f"{where}: {name} has no label {sorted(labels - known - SCRAPED)}")
    return shown


def main():
    pages = [pathlib.Path(page).read_text() for page in sys.argv[1:]]
    names = exported(pages)
    for page in pages:
        promtool("check", "metrics", text=page)
    promtool("check", "rules", ALERTS)
    promtool("test", "rules", HERE / "prometheus/alerts_test.yml")

    text = (HERE / "grafana/tamis.json").read_text()
    panels = list(check_panels(json.loads(text)))
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:
        # JSON is YAML. As rules, queries are parsed.
        each = [{"record": f"q{number}", "expr": query} for number, (_, query) in enumerate(panels)]
        rules.write(json.dumps({"groups": [{"name": "dashboard", "rules": each}]}))
        rules.flush()
        promtool("check", "rules", "--lint=none", rules.name)

    alerts = [("alerts.yml", query) for query in alert_queries(ALERTS.read_text())]
    shown = check_names([*panels, *alerts], names)
    for name in sorted(set(names) - shown):
        if re.sub(r"_(bucket|sum|count)$", "", name) not in shown:
            problems.append(f"no panel shows {name}")
    print(f"{len(names)} names exported, {len(panels)} queries of the dashboard, {len(alerts)} alerts")
    sys.exit("\n".join(problems) or 0)


def alert_queries(text):
    """The expressions of the rules; written here so that no library of YAML is needed.

    >>> alert_queries("  expr: a > 1\\n  for: 1m\\n  expr: >-\\n      b\\n      / c > 2\\n  for: 1m\\n")
    ['a > 1', 'b / c > 2']
    """
    found = re.findall(r"^ *expr: (?:>-\n((?:.*\n)*?)(?= *for:)|(.*)$)", text, re.MULTILINE)
    return [" ".join((folded or line).split()) for folded, line in found]


if __name__ == "__main__":
    main()
