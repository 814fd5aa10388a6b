"""From `pip install` of the wheel to the first picture, without a file of one's own.

Each time, a new environment with an empty HOME gets the wheel and what it needs from the package index. `topolane compare` then
replays the month that Topolane brings under three policies, and writes a report with figures.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 30.0
"""Seconds."""
PASSED_ON = ("PIP_", "SSL_")
"""The settings of pip and of TLS that are those of the machine."""


def seconds_of(command: list[object], environment: dict[str, str], folder: Path) -> float:
    """How long a command takes. Raises CalledProcessError if it fails."""
    began = time.monotonic()
    words = [str(word) for word in command]
    subprocess.run(words, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def once(wheel: Path) -> tuple[float, float]:
    """Seconds of the installation, and from its end to the report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON)}
        environment = kept | {"HOME": name, "PATH": "/usr/bin:/bin"}
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        programs = folder / "venv" / "bin"
        install = seconds_of([programs / "pip", "install", "--quiet", wheel], environment, folder)
        picture = seconds_of([programs / "topolane", "compare", "--out", "out"], environment, folder)
        if "<svg" not in (folder / "out" / "report.html").read_text():
            raise SystemExit("the report has no figure")
        return install, picture


def main() -> None:
    """Prints the medians. The exit code is 1 if the target is missed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("wheel", type=Path, help="the wheel, or a directory with one for this processor")
    asked.add_argument("--times", type=int, default=3, help="how often it is measured")
    given = asked.parse_args()
    wheel = given.wheel.resolve()
    if wheel.is_dir():
        found = sorted(wheel.glob(f"topolane-[0-9]*_{os.uname().machine}.whl"))
        if len(found) != 1:
            raise SystemExit(f"{given.wheel}: {len(found)} wheels for this processor: make wheel writes one")
        wheel = found[0]
    rows = [once(wheel) for _ in range(given.times)]
    whole = statistics.median(map(sum, rows))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"pip install          {statistics.median(install for install, _ in rows):5.1f} s")
    print(f"topolane compare     {statistics.median(picture for _, picture in rows):5.1f} s")
    print(
        f"both, median of {given.times:2}   {whole:5.1f} s  target under {TARGET:g} s  {'met' if whole < TARGET else 'missed'}"
    )
    print(
        f"processor time of each, with the environment {(used.ru_utime + used.ru_stime) / given.times:.1f} s"
    )
    sys.exit(0 if whole < TARGET else 1)


if __name__ == "__main__":
    main()
