"""Measures the time from `pip install` of the wheel to the first picture, without any file of the user.

Each time, a new environment with an empty HOME gets the wheel and its requirements from the package index.
Then `topolane compare` replays the month that Topolane includes under three policies, and writes a report
with figures.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Options, Result

TARGET = 30.0
"""In seconds."""
PASSED_ON = ("PIP_", "SSL_")
"""Prefixes of environment variables that pip and TLS need from this machine."""


def seconds_of(command: list[object], environment: dict[str, str], folder: Path) -> float:
    """The seconds that a command takes. Raises CalledProcessError if it fails."""
    began = time.monotonic()
    words = [str(word) for word in command]
    subprocess.run(words, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def once(wheel: Path) -> tuple[float, float]:
    """Seconds of the installation, and seconds from its end to the report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON)}
        environment = kept | {"HOME": name, "PATH": "/usr/bin:/bin"}
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        programs = folder / "venv" / "bin"
        install = seconds_of([programs / "pip", "install", "--quiet", wheel], environment, folder)
        picture = seconds_of([programs / "topolane", "compare", "--out", "out"], environment, folder)
        if "<svg" not in (folder / "out" / "report.html").read_text():
            raise RuntimeError("the report has no figure")
        return install, picture


def measure(options: Options) -> Result:
    """Prints the medians."""
    wheel = options.wheel.resolve()
    if wheel.is_dir():
        found = sorted(wheel.glob(f"topolane-[0-9]*_{os.uname().machine}.whl"))
        if len(found) != 1:
            raise RuntimeError(
                f"{options.wheel}: {len(found)} wheels for this processor: make wheel writes one"
            )
        wheel = found[0]
    rows = [once(wheel) for _ in range(options.times)]
    whole = statistics.median(map(sum, rows))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"pip install          {statistics.median(install for install, _ in rows):5.1f} s")
    print(f"topolane compare     {statistics.median(picture for _, picture in rows):5.1f} s")
    print(
        f"both, median of {options.times:2}   {whole:5.1f} s  target under {TARGET:g} s  {'met' if whole < TARGET else 'missed'}"
    )
    print(
        f"processor time of each, with the environment {(used.ru_utime + used.ru_stime) / options.times:.1f} s"
    )
    return Result(facts={"seconds": rows}, failed=whole >= TARGET)
