"""Runs a sweep of a thousand runs on a real Dask cluster on this machine.

Eight policies, four loads and 32 seeds of a synthetic month give 1,024 runs, on one worker and on two. The
table compares runs per second with those of one local process, and the results to the last digit. With
--kill, the first worker is killed after ten seconds, and Dask's nanny restarts it. The exit code is 1 if a
table differs.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from measure import Options, Result, table

SCRIPT = Path(sys.executable).with_name("topolane")
POLICIES = "first-fit,random,slurm-tree,isolated,jigsaw,dedicated,laas,hop-bytes"
LOADS = "0.7,0.8,0.9,1.0"


def wait_for(what: str, said: Callable[[], object], seconds: float = 120) -> None:
    """Waits until the function returns a true value."""
    deadline = time.monotonic() + seconds
    while not said():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler with single-threaded workers, each under a nanny. Yields its address and the nannies."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, said: str, *words: str) -> str:
        log = folder / f"{name}.txt"
        with log.open("w") as output:
            command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
            started.append(subprocess.Popen(command, cwd=folder, stdout=output, stderr=output))
        wait_for(f"{name} says {said!r}", lambda: said in log.read_text())
        return log.read_text()

    try:
        log = start("scheduler", "Scheduler at:", "scheduler", "--port", "0")
        found = re.search(r"Scheduler at: +tcp://(\S+)", log)
        if found is None:
            raise RuntimeError(f"Dask's scheduler says nothing of its address: {log[-200:]}")
        for number in range(workers):
            options = ("--nthreads", "1", "--local-directory", str(folder / f"worker{number}"))
            start(f"worker{number}", "Registered to", "worker", found[1], *options)
        yield found[1], started[1:]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def command(options: Options, *more: str) -> list[str]:
    """The command line of the sweep."""
    words = f"compare --workload cab-aug --limit {options.jobs} --policies {POLICIES} --queue easy --scenarios none"
    return [str(SCRIPT), *words.split(), "--loads", LOADS, "--seeds", str(options.seeds), "--json", *more]


def timed(words: Sequence[str], midst: Callable[[], None] | None = None) -> tuple[str, float]:
    """The output of a command, and the seconds that it took. `midst` is called after ten of them."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.DEVNULL)
        if midst is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            midst()
        if process.wait():
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
        output.seek(0)
        return output.read(), time.monotonic() - began


def kill_worker(nanny: subprocess.Popen[bytes]) -> None:
    """Kills the worker of a nanny, which then starts another."""
    children = Path(f"/proc/{nanny.pid}/task/{nanny.pid}/children").read_text().split()
    for child in children:
        if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)


def measure(options: Options) -> Result:
    """Prints the table. Fails if a table of Dask differs."""
    runs = len(POLICIES.split(",")) * len(LOADS.split(",")) * options.seeds
    expected, seconds = timed(command(options, "--jobs", "1"))
    rows = [["over", "seconds", "runs a second", "the same table"]]
    rows.append(["one local process", f"{seconds:.1f}", f"{runs / seconds:.1f}", "-"])
    same = True
    for count in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), count) as (address, nannies):
            midst = (lambda: kill_worker(nannies[0])) if options.kill else None
            found, seconds = timed(command(options, "--executor", f"dask://{address}"), midst)
        same &= found == expected
        killed = ", one killed meanwhile" if options.kill else ""
        name = f"{count} {'worker' if count == 1 else 'workers'}{killed}"
        rows.append([name, f"{seconds:.1f}", f"{runs / seconds:.1f}", "yes" if found == expected else "NO"])
    print(f"{runs:,} runs of {options.jobs} jobs on {os.cpu_count()} cores")
    print(table(rows))
    return Result(facts={"rows": rows}, failed=not same)
