"""Containers of a real runtime (crun, runc), each one process of busybox that computes."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPUTES = ["/bin/busybox", "sh", "-c", "while :; do :; done"]


def missing(runtime: str) -> str | None:
    """What such a container lacks here, in words."""
    lacking = [name for name in (runtime, "busybox") if shutil.which(name) is None]
    return f"{', '.join(lacking)} is not installed" if lacking else None


@dataclass(frozen=True)
class Container:
    """A running container."""

    runtime: str
    state: Path
    """The runtime's own folder."""
    id: str

    def call(self, *words: str) -> str:
        """What the runtime prints; its own output goes to a file, since a container keeps it open."""
        output = self.state / "output"
        with output.open("w") as file:
            done = subprocess.run(
                [self.runtime, "--root", str(self.state), *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        printed = output.read_text()
        assert done.returncode == 0, f"{self.runtime} {' '.join(words)}: {printed}"
        return printed

    def shown(self) -> dict[str, object]:
        """Its state: status, pid and more."""
        found: dict[str, object] = json.loads(self.call("state", self.id))
        return found


@contextlib.contextmanager
def container(runtime: str, folder: Path) -> Iterator[Container]:
    """A container in a new folder, removed at the end."""
    bundle, state = folder / "bundle", folder / "state"
    for made in (state, *(bundle / "rootfs" / name for name in ("bin", "proc", "dev", "sys"))):
        made.mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", bundle / "rootfs" / "bin" / "busybox")
    subprocess.run([runtime, "spec"], cwd=bundle, check=True)
    config = json.loads((bundle / "config.json").read_text())
    config["process"] |= {"terminal": False, "args": COMPUTES}
    (bundle / "config.json").write_text(json.dumps(config))
    runs = Container(runtime, state, secrets.token_hex(32))
    runs.call("run", "--detach", "--bundle", str(bundle), runs.id)
    try:
        yield runs
    finally:
        runs.call("delete", "--force", runs.id)
