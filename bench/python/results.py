"""Results as `bench -- report` reads them: bench/results/NAME.json."""

import json
import os
import pathlib
import platform
import statistics


def row(task, seconds, keys, group=""):
    """One task: the seconds of each peer, round by round; the first peer is ours."""
    ratios = [[theirs / ours for theirs, ours in zip(of_peer, seconds[0])] for of_peer in seconds]
    return {"group": group, "task": task, "time": {
        "ns": [statistics.median(of_peer) / keys * 1e9 for of_peer in seconds],
        "ratio": [statistics.median(of_peer) for of_peer in ratios],
        "spread": [quartiles(of_peer) for of_peer in ratios],
    }}


def quartiles(values):
    values = sorted(values)
    return [values[(len(values) - 1) // 4], values[(len(values) - 1) * 3 // 4]]


def machine():
    """The kind of this machine, not which one."""
    name = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as info:
            name = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "")
    return f"{name or platform.machine()}, {os.cpu_count()} cores"


def save(name, title, command, peers, rows):
    suite = {"name": name, "title": title, "command": command, "machine": machine(), "peers": peers, "rows": rows}
    path = pathlib.Path(__file__).parents[1] / "results" / f"{name}.json"
    path.write_text(json.dumps(suite, indent=2) + "\n")
