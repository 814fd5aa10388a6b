"""Slurm's state by Slurm's own commands with `--json`, which is the JSON that slurmrestd gives."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import Any

from topolane import parsing
from topolane._engine import InputError
from topolane.slurm.errors import SlurmError

FORMATS = ("v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.45")
"""The supported formats, the best first, as in rest.py."""


class Commands:
    """Slurm's commands on this machine: `scontrol` and `sdiag`, release 23.02 or newer.

    Raises SlurmError if they are missing, are older, or know no supported format.
    """

    def __init__(self) -> None:
        self.version = ""
        listed = _said("scontrol", "--json=list", answers_older=True)
        offered = re.findall(r"data_parser/(v[\d.]+)", listed)
        known = [each for each in FORMATS if each in offered]
        if offered and not known:
            raise SlurmError(
                f"scontrol --json writes {', '.join(sorted(offered))}; known are {', '.join(sorted(FORMATS))}"
            )
        # Slurm 23.02 cannot list its formats; it has one.
        self._json = f"--json={known[0]}" if known else "--json"
        self.version = known[0] if known else "the JSON of scontrol"

    def close(self) -> None:
        """Nothing is open."""

    def read(self, thing: str) -> list[dict[str, Any]]:
        """All jobs, nodes, partitions or reservations. Raises SlurmError."""
        answer = self._asked("scontrol", "show", thing)
        # Without an answer of slurmctld, scontrol prints an empty list and ends with 0. Only the missing time shows the failure.
        if not answer[thing] and not _whole(answer.get("last_update", 1)):
            raise SlurmError(f"slurmctld does not answer `scontrol show {thing}`")
        found: list[dict[str, Any]] = answer[thing]
        return found

    def clock(self) -> float:
        """Slurm's time, whole seconds since 1970."""
        return float(_whole(self._asked("sdiag")["statistics"]["req_time"]))

    def is_new(self, thing: str, since: float) -> bool:
        """Always true: scontrol reads everything to tell."""
        return True

    def _asked(self, command: str, *words: str) -> dict[str, Any]:
        called = " ".join([command, self._json, *words])
        try:
            answer = parsing.parse_json(_said(command, self._json, *words), f"`{called}`")
        except InputError as error:
            raise SlurmError(str(error)) from error
        if not isinstance(answer, dict):
            raise SlurmError(f"`{called}` prints no object")
        for said in answer.get("errors") or ():
            raise SlurmError(f"`{called}`: {said.get('error') or said.get('description')}")
        return answer


def _said(command: str, *words: str, answers_older: bool = False) -> str:
    """What a command prints. It waits for slurmctld no longer than Slurm's MessageTimeout."""
    called = " ".join([command, *words])
    try:
        done = subprocess.run([command, *words], capture_output=True, text=True)
    except OSError as error:
        raise SlurmError(f"{command} cannot be run: {error.strerror} (or give --slurmrestd)") from error
    said = " ".join(done.stderr.split())
    if "option" in said and "json" in said:
        raise SlurmError(f"this {command} has no --json: Slurm 23.02 or newer has it; or give --slurmrestd")
    if done.returncode and not answers_older:
        raise SlurmError(f"`{called}` says {said[:300] or 'nothing'}")
    return done.stdout + (done.stderr if answers_older else "")


def _whole(value: Mapping[str, Any] | int) -> int:
    return int(value["number"] if isinstance(value, Mapping) else value)
