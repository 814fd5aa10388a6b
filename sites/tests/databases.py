"""A real PostgreSQL of our own: a cluster in a folder, at a Unix socket."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import DEADLINE, until


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database; skips where there is no PostgreSQL."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed (Debian: postgresql)")
    # It does not run as root.
    user = "postgres" if os.getuid() == 0 else None
    if user is not None and user not in {one.pw_name for one in pwd.getpwall()}:
        pytest.skip("there is no user postgres to run PostgreSQL as")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
    if user is not None:
        shutil.chown(folder, user)
    options = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "--no-sync"],
        check=True,
        **options,
    )
    server = subprocess.Popen(
        [
            programs / "postgres",
            "-D",
            folder / "data",
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ],
        **{**options, "stderr": subprocess.DEVNULL},
    )
    try:
        ready = [programs / "pg_isready", "-q", "-h", folder]
        until(
            lambda: server.poll() is not None or not subprocess.run(ready, **options).returncode, "PostgreSQL"
        )
        assert server.poll() is None, "PostgreSQL does not start"
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(DEADLINE)
        shutil.rmtree(folder)
