"""The page of `topolane serve` at 5,000 nodes and 10,000 jobs: its first paint, its updates, and what 50 viewers cost.

The jobs are those of a made-up month, squeezed so that some run and the others wait. A real Chromium opens the page of a real
server; viewers read the stream of changes as browsers do. Each figure stands with its target and whether it is met.
"""

from __future__ import annotations

import argparse
import contextlib
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

UPDATES = """
const [seconds, done] = arguments, seen = [];
const watch = new PerformanceObserver((list) => seen.push(...list.getEntriesByType("measure").map((one) => one.duration)));
watch.observe({ type: "measure" });
setTimeout(() => { watch.disconnect(); done(seen); }, seconds * 1000);
"""


def log_of(folder: Path) -> Path:
    """A log of jobs that are all submitted within an hour: 1 to 64 nodes for 1 to 12 hours."""
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
    """The address of the page, and the number of its process."""
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


def seen_by_a_browser(address: str, seconds: float) -> tuple[float, list[float]]:
    """Seconds from the start of navigation to the first picture of the machine, the median of five loads; and of each update
    from the arrival of its event to the picture, seconds."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless", "--no-sandbox", "--disable-gpu"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(seconds + 60)
        paints = []
        for _ in range(5):
            driver.get(address)
            while not (
                marks := driver.execute_script("return performance.getEntriesByName('topolane-painted')")
            ):
                time.sleep(0.05)
            paints.append(marks[0]["startTime"] / 1000)
        updates = driver.execute_async_script(UPDATES, seconds)
        return statistics.median(paints), [one / 1000 for one in updates]
    finally:
        driver.quit()


def cores_of(process: int, seconds: float) -> float:
    """How many cores a process uses."""
    tick = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / tick

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


@contextlib.contextmanager
def viewers(address: str) -> Iterator[None]:
    """Viewers that read the changes, and the outlook every ten seconds as the page does."""
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


def main() -> None:
    """Prints the table. The exit code is 1 if a target is missed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument(
        "--seconds", type=float, default=30.0, help="how long updates and viewers are measured"
    )
    seconds = asked.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder, page(Path(folder)) as (address, process):
        paint, updates = seen_by_a_browser(address, seconds)
        with viewers(address):
            time.sleep(3)
            cores = cores_of(process, seconds)
    worst = max(updates)
    rows = [
        ("first paint, median of 5", f"{paint:.2f} s", f"{FIRST_PAINT:g} s", paint < FIRST_PAINT),
        (f"update, median of {len(updates)}", f"{1000 * statistics.median(updates):.0f} ms", "100 ms", statistics.median(updates) < UPDATE),
        ("update, longest", f"{1000 * worst:.0f} ms", "100 ms", worst < UPDATE),
        (f"{VIEWERS} viewers", f"{cores:.2f} cores", f"{CORES:g} cores", cores < CORES),
    ]  # fmt: skip
    for what, found, target, met in rows:
        print(f"{what:28} {found:>10}  target under {target:10} {'met' if met else 'missed'}")
    sys.exit(0 if all(met for *_, met in rows) else 1)


if __name__ == "__main__":
    main()
