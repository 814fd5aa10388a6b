"""Four small guests on two sites, an MPI program across them, and a manager that moves them while it runs.

    python demo.py [FOLDER]

What it prints is kept in docs/sites-demo.txt. Needs root, QEMU, MPICH, dropbear, busybox and a kernel for guests
(`make sites-demo` gets them). Leaves nothing behind but FOLDER.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import files
from guest_image import kernel, missing
from mpi_image import NEEDED, mpi_image
from stage import Stage, say, until
from topolane._engine import InputError
from topolane.mpi.build import library
from topolane.sites.qemu import Folder
from wan import wan

PACE = 200
"""Milliseconds that an iteration takes at least: emulated guests are slow, and the machine may be busy."""
SENDS = 16
"""Messages point to point in an iteration of pairs.c, of all its ranks."""
MESSAGES = 3
"""The column of a matrix file."""
WATCHED = 20.0
"""Seconds over which figures are taken."""


def main() -> None:
    """The demonstration."""
    if reason := missing(*NEEDED, "ip", "bridge", "busybox", "cc"):
        raise SystemExit(f"the demonstration cannot run: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1]).resolve()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sites-demo-")))
        network = stack.enter_context(wan("ab"))
        stack.callback(_end_guests, folder)
        stage = Stage(folder, network)
        stack.callback(stage.end)
        _play(stage, stack)


def _play(stage: Stage, stack: contextlib.ExitStack) -> None:
    folder = stage.folder
    boot = kernel()
    assert boot
    addresses = files.ADDRESSES | {"manager": files.MANAGER}
    image = mpi_image(folder, addresses, {"libtopolane_mpi.so": library("mpicc.mpich", folder / "cache")})
    files.write(folder, stage.network, boot, image)
    say(f"Guests: {boot.name}, MPICH {_mpich()}, emulated; {image.stat().st_size >> 20} MiB of initramfs.")
    stage.daemon("wan", "sites", "run", "--config", "sites.toml")
    until(lambda: stage.check() or (folder / "manager.sock").exists(), "the manager listens")
    stage.topolane("sites", "up", "pairs.toml", "--config", "sites.toml")
    for host, site in files.SITES.items():
        words = ["--name", host, "--site", site, "--driver", "qmp", "--address", host, "--every", "2"]
        stage.daemon(host, "sites", "host", *words)
    stack.callback(lambda: stage.topolane("sites", "down", "pairs.toml", "--config", "sites.toml"))
    until(lambda: all(stage.ask(guest, "true") is not None for guest in files.GUESTS), "the guests answer")
    _flat(stage)
    _moved(stage)


def _flat(stage: Stage) -> None:
    """What crosses the WAN where every rank speaks for itself, with no guest moved."""
    say("\n# The collectives as MPICH does them. Nothing is moved yet.")
    stage.topolane("sites", "planning", "pause")
    program = stage.mpiexec("flat", "never", f"{PACE} /tmp/stop-flat")
    _report(stage, "flat")
    _stop(stage, "flat", program)


def _moved(stage: Stage) -> None:
    say("\n# The collectives in two levels.")
    program = stage.mpiexec("pairs", "always", f"{PACE} /tmp/stop-pairs")
    _report(stage, "pairs")
    stage.topolane("sites", "explain", "pairs")
    say("\n# Now the manager may move guests. The program runs on.")
    say("# It is declared to run for an hour: PUT /programs/pairs/remaining")
    stage.client.put("/programs/pairs/remaining", {"seconds": 3600})
    began = time.time()
    stage.topolane("sites", "planning", "resume")
    until(lambda: _together(stage), "those that talk most are on one site")
    say(f"(those that talk most are on one site {time.time() - began:.0f} s later)")
    time.sleep(5)
    stage.topolane("sites", "status")
    _report(stage, "pairs")
    _moves(stage)
    _stop(stage, "pairs", program)


def _report(stage: Stage, program: str) -> None:
    """Messages between sites in an iteration, over some seconds."""
    until(lambda: _look(stage, f"/programs/{program}").get("epoch"), f"{program} knows its sites")
    until(lambda: _counts(stage, program)[0] > 10, f"{program} iterates")
    time.sleep(5)
    first = _counts(stage, program)
    time.sleep(WATCHED)
    second = _counts(stage, program)
    iterations, point_to_point, collective = (now - before for now, before in zip(second, first))
    say(
        f"{program}, {_where(stage)}: {iterations:.0f} iterations in {WATCHED:.0f} s; between the sites an "
        f"iteration sends {point_to_point / iterations:.1f} messages point to point, "
        f"{collective / iterations:.1f} in collectives"
    )


def _counts(stage: Stage, program: str) -> tuple[float, float, float]:
    """Iterations so far, and the messages that crossed if all guests were all the time where they are now."""
    site = _sites(stage)
    sums = []
    for kinds in ((0,), (1, 2)):
        rows = [row for kind in kinds for row in _rows(stage, program, kind)]
        sums.append(sum(count for near, far, count in rows if site[f"g{near + 1}"] != site[f"g{far + 1}"]))
        if kinds == (0,):
            iterations = sum(count for _, _, count in rows) / SENDS
    return iterations, sums[0], sums[1]


def _rows(stage: Stage, program: str, kind: int) -> list[tuple[int, int, float]]:
    text = stage.client.text(f"/programs/{program}/matrix", kind=kind)
    rows = [line.split(",") for line in text.splitlines() if line[:1].isdigit()]
    return [(int(row[0]), int(row[1]), float(row[MESSAGES])) for row in rows]


def _look(stage: Stage, path: str) -> dict[str, Any]:
    """What the manager answers; nothing while it knows nothing of it."""
    try:
        answer: dict[str, Any] = stage.client.get(path)
    except InputError:
        return {}
    return answer


def _sites(stage: Stage) -> dict[str, str]:
    return {guest["name"]: guest["site"] for guest in stage.client.get("/guests")}


def _where(stage: Stage) -> str:
    return ", ".join(f"{guest} {site}" for guest, site in sorted(_sites(stage).items()))


def _together(stage: Stage) -> bool:
    """Whether the ranks that talk most are on one site each, two by two or all."""
    stage.check()
    site = _sites(stage)
    moving = any(guest["moving"] for guest in stage.client.get("/guests"))
    return not moving and site["g1"] == site["g3"] and site["g2"] == site["g4"]


def _end_guests(folder: Path) -> None:
    """What is left where the manager could not be asked any more."""
    for host in files.SITES:
        if (folder / host).is_dir():
            left = Folder(folder / host)
            for guest in left.guests():
                left.end(guest)


def _moves(stage: Stage) -> None:
    for move in reversed(stage.client.get("/moves")):
        detail = move["detail"]
        say(
            f"{move['guest']} went from {move['source']} to {move['target']}: {move['stage']}, "
            f"{detail['seconds']:.1f} s, {detail['bytes'] / 2**20:.0f} MiB copied, "
            f"it stood still for {1e3 * detail['downtime']:.0f} ms"
        )


def _stop(stage: Stage, program: str, process: subprocess.Popen[str]) -> None:
    """Ends the program, and compares what it computed with a run here that nobody watches or moves."""
    until(lambda: stage.ask("g1", f"touch /tmp/stop-{program}") is not None, "g1 takes an order")
    until(lambda: process.poll() is not None, f"{program} ends")
    last = re.search(r"(\d+) iterations, checksum (\w+)", stage.said(program))
    if process.returncode or not last:
        raise SystemExit(f"{program} failed: {stage.said(program)}")
    say(f"{program}: {last[0]}")
    words = ["mpiexec.mpich", "-n", "4", str(stage.folder / "pairs"), "0", last[1]]
    preload = {"LD_PRELOAD": str(stage.folder / "nap.so")}
    here = subprocess.run(words, env=os.environ | preload, capture_output=True, text=True, timeout=600)
    say(f"the same outside: {here.stdout.splitlines()[-1]}")
    if last[0] not in here.stdout:
        raise SystemExit(f"{program} computed something else than outside: {here.stdout}{here.stderr}")


def _mpich() -> str:
    printed = subprocess.run(["mpiexec.mpich", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version:\s+(\S+)", printed)
    return found[1] if found else "of unknown version"


if __name__ == "__main__":
    main()
