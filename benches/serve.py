"""Measures the page of `topolane serve` with 5,000 nodes and 10,000 jobs: its first paint, its updates, and
the cost of 50 viewers.

All jobs are submitted within an hour, so that some run and the others wait. A real Chromium opens the page of
a real server; viewers read the stream of changes as browsers do. Each figure is printed with its target and
whether it is met.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Options, Result

MAIN = "import sys; from topolane.cli import main; sys.exit(main())"
MACHINE = """\
name = "node"
[[site]]
name = "core"
children = [25, 20, 10]
parents = [1, 20, 10]
cables = [1, 1, 2]
nodes = "node[1-5000]"
"""
JOBS = 10_000
VIEWERS = 50
FIRST_PAINT, UPDATE, CORES = 1.0, 0.1, 0.5
"""Targets: seconds, seconds, cores."""

TRACED = "disabled-by-default-devtools.timeline,blink.user_timing"
"""The events that the browser records: the tasks of each thread with their processor times, and the page's
own measures.
"""


@dataclasses.dataclass(frozen=True)
class Update:
    """Seconds from the arrival of a change to the end of its drawing."""

    elapsed: float
    worked: float
    """Processor time of the page's thread."""


def log_of(folder: Path) -> Path:
    """Writes a log of jobs that are all submitted within an hour, with 1 to 64 nodes for 1 to 12 hours."""
    file = folder / "jobs.swf"
    rows = []
    for job in range(1, JOBS + 1):
        mixed = job * 2654435761 % 2**32
        nodes, run = 1 << mixed % 7, 3600 + mixed // 7 % (11 * 3600)
        rows.append(f"{job} {job * 3600 // JOBS} -1 {run} {nodes} -1 -1 {nodes} {run} -1 1 1 1 1 1 1 -1 -1")
    file.write_text("; MaxProcs: 5000\n" + "\n".join(rows) + "\n")
    return file


@contextlib.contextmanager
def page(folder: Path) -> Iterator[tuple[str, int]]:
    """Serves the page. Yields its address and the id of its process."""
    (folder / "machine.toml").write_text(MACHINE)
    command = [sys.executable, "-c", MAIN, "serve", "--listen", "127.0.0.1:0", "--shadow", "none"]
    command += ["--machine", str(folder / "machine.toml"), "--trace", str(log_of(folder)), "--at", "1"]
    command += ["--policy", "first-fit", "--speed", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            found = re.match(r"http://\S+", process.stdout.readline())
            assert found, "topolane serve did not start"
            yield found[0], process.pid
        finally:
            process.terminate()


def seen_by_a_browser(address: str, seconds: float) -> tuple[float, list[Update]]:
    """Seconds from the start of navigation to the first picture of the machine, as the median of five loads;
    and the updates in the seconds after that.
    """
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless", "--no-sandbox", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"traceCategories": TRACED})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        paints = []
        for _ in range(5):
            driver.get(address)
            while not (
                marks := driver.execute_script("return performance.getEntriesByName('topolane-painted')")
            ):
                time.sleep(0.05)
            paints.append(marks[0]["startTime"] / 1000)
        driver.get_log("performance")
        time.sleep(seconds)
        driver.get("about:blank")  # the browser writes its record when the page is left
        rows = [json.loads(row["message"])["message"] for row in driver.get_log("performance")]
        events = [row["params"] for row in rows if row["method"] == "Tracing.dataCollected"]
        return statistics.median(paints), updates_of(events)
    finally:
        driver.quit()


def updates_of(events: list[dict[str, Any]]) -> list[Update]:
    """The updates in the browser's record: measures of the page, with the tasks of its thread meanwhile."""
    measures = [one for one in events if one.get("name") == "topolane-update"]
    begun: dict[str, int] = {}
    found = []
    for one in sorted(measures, key=lambda one: (one["ts"], one["ph"] == "b")):
        id = one["id2"]["local"]
        if one["ph"] == "b":
            begun[id] = one["ts"]
        elif id in begun:
            start, end = begun.pop(id), one["ts"]
            worked = sum(
                task.get("tdur", 0)
                for task in events
                if task.get("name") == "RunTask"
                and (task["pid"], task["tid"]) == (one["pid"], one["tid"])
                and task["ts"] < end
                and task["ts"] + task["dur"] > start
            )
            found.append(Update((end - start) / 1e6, worked / 1e6))
    return found


def cores_of(process: int, seconds: float) -> float:
    """The number of cores that a process uses."""
    tick = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / tick

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


@contextlib.contextmanager
def viewers(address: str) -> Iterator[None]:
    """Viewers that read the changes, and every ten seconds the outlook as the page does."""
    ending = threading.Event()

    def watch() -> None:
        with urllib.request.urlopen(f"{address}/api/events") as stream:
            asked = time.monotonic()
            while not ending.is_set():
                stream.readline()
                if time.monotonic() - asked > 10:
                    asked = time.monotonic()
                    urllib.request.urlopen(f"{address}/api/outlook").read()

    threads = [threading.Thread(target=watch, daemon=True) for _ in range(VIEWERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join(10)


def row(what: str, seconds: float) -> tuple[str, str, str, bool]:
    """The row for a figure about updates."""
    return what, f"{1000 * seconds:.0f} ms", f"{1000 * UPDATE:g} ms", seconds < UPDATE


def measure(options: Options) -> Result:
    """Prints the table."""
    seconds = options.seconds
    with tempfile.TemporaryDirectory() as folder, page(Path(folder)) as (address, process):
        paint, updates = seen_by_a_browser(address, seconds)
        with viewers(address):
            time.sleep(3)
            cores = cores_of(process, seconds)
    elapsed, worked = [one.elapsed for one in updates], [one.worked for one in updates]
    rows = [
        ("first paint, median of 5", f"{paint:.2f} s", f"{FIRST_PAINT:g} s", paint < FIRST_PAINT),
        row("update, median", statistics.median(elapsed)),
        row("update, longest", max(elapsed)),
        row("its processor time, median", statistics.median(worked)),
        row("its processor time, longest", max(worked)),
        (f"{VIEWERS} viewers", f"{cores:.2f} cores", f"{CORES:g} cores", cores < CORES),
    ]
    print(f"{len(updates)} updates; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for what, found, target, met in rows:
        print(f"{what:32} {found:>10}  target under {target:10} {'met' if met else 'missed'}")
    return Result(facts={"rows": rows}, failed=not all(met for *_, met in rows))
