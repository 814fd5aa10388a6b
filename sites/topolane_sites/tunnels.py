"""The tunnels of clusters on a host, as the host's daemon sees them. It starts a watch again that has ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import psutil

from topolane_sites.openvpn import FOLDER, ON
from topolane_sites.report_parsing import MOST_TUNNELS


class Tunnels:
    """The OpenVPN processes that `sites up` started on a host. Their files are their owner's, who is root.

    A watch counts as ended if it was not there at two looks, so that a command that stops it is not disturbed.
    """

    def __init__(self, host: str, folder: Path = Path(FOLDER)) -> None:
        self._host, self._folder = host, folder
        self._ended: set[Path] = set()

    def look(self) -> list[dict[str, Any]]:
        """A row for every tunnel: `cluster`, whether OpenVPN `runs`, and how often it had to be started again since the
        last `sites up` (`restarts`).
        """
        rows = []
        ended: set[Path] = set()
        for conf in sorted(self._folder.glob("*.conf"))[:MOST_TUNNELS]:
            try:
                if not self._is_own(conf):
                    continue
                watch = conf.with_suffix(".watch")
                rows.append(
                    {
                        "cluster": conf.stem.rpartition("-")[0],
                        "runs": _alive(conf.with_suffix(".pid"), conf),
                        "restarts": len(_lines(conf.with_suffix(".log"))),
                    }
                )
                if not _alive(conf.with_suffix(".watch.pid"), watch):
                    ended.add(conf)
                    if conf in self._ended and watch.exists():
                        subprocess.run(["setsid", "-f", "sh", str(watch)], check=False)
            except OSError:
                continue  # a command removes it just now, or it is another user's
        self._ended = ended
        return rows

    def _is_own(self, conf: Path) -> bool:
        """Whether this user made the tunnel, on this host: several hosts on one machine share the folder."""
        if any(
            one.st_uid != os.geteuid() or one.st_mode & 0o022 for one in (self._folder.stat(), conf.stat())
        ):
            return False  # another user could say what is executed
        with conf.open(encoding="ascii", errors="replace") as file:
            return [file.readline(), file.readline()][1] == f"{ON}{self._host}\n"


def _alive(pid: Path, words: Path) -> bool:
    """Whether the process of a file runs, and is not another one that got its number."""
    try:
        return str(words) in psutil.Process(int(pid.read_text())).cmdline()
    except (OSError, ValueError, psutil.Error):
        return False


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []
