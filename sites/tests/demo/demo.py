"""Small guests on two sites, MPI programs across them, and a manager that moves guests while the programs run.

    python demo.py [FOLDER]

What it prints is kept in docs/sites-demo.txt. Needs root, QEMU, MPICH, dropbear, busybox and a kernel for guests
(`make sites-demo` gets them). Leaves nothing behind but FOLDER.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[2] / "tests")]

import traffic
import unequal
from guest_image import missing
from mpi_image import NEEDED


def main() -> None:
    """The demonstration."""
    if reason := missing(*NEEDED, "ip", "bridge", "busybox", "cc"):
        raise SystemExit(f"the demonstration cannot run: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1]).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        _play(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="sites-demo-") as made:
            _play(Path(made))


def _play(folder: Path) -> None:
    traffic.play(folder / "traffic")
    unequal.play(folder / "unequal")


if __name__ == "__main__":
    main()
