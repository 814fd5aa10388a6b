"""A file that says which links running jobs were given: Slurm cannot be asked for that."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topolane import files, parsing
from topolane._engine import InputError, Machine
from topolane.live.held import Held, Share


class Given:
    """The jobs that own links, in a file as `topolane routes` reads it."""

    def __init__(self, file: str, machine: Machine) -> None:
        self._file, self._machine = file, machine
        self._last: dict[int, Held] | None = None
        """What is in the file, where it was written here."""

    def read(self) -> dict[int, Held]:
        """What an earlier daemon gave jobs that may run still. Raises InputError for what is no such file."""
        path = Path(self._file)
        if not path.exists():
            return {}
        given = parsing.read_json(path)
        try:
            return {
                int(row["id"]): Held(
                    frozenset(self._machine.nodes_named(row["nodes"])),
                    tuple(map(int, row["links"])),
                    _bandwidth_share(row),
                    tuple(map(int, row.get("lent", []))),
                    _share(row.get("share")),
                )
                for row in given["running"]
            }
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise InputError(f"{path}: not a state of an earlier daemon: {error}") from error

    def keep(self, jobs: Mapping[int, Held]) -> None:
        """Writes down these jobs, if they are others than before. Raises InputError where that fails."""
        if jobs == self._last:
            return
        self._last = None
        rows = [
            {
                "id": job,
                "nodes": self._machine.hostlist(sorted(one.nodes)),
                "links": list(one.links),
                "bandwidth_share": one.bandwidth_share,
                **({"lent": list(one.lent)} if one.lent else {}),
                **({"share": dataclasses.asdict(one.share)} if one.share else {}),
            }
            for job, one in jobs.items()
        ]
        files.write(self._file, json.dumps({"running": rows}) + "\n", "state")
        self._last = dict(jobs)


def _share(row: dict[str, Any] | None) -> Share | None:
    if row is None:
        return None
    return Share(float(row["begin"]), float(row["since"]), _bandwidth_share(row), float(row["had"]))


def _bandwidth_share(row: dict[str, Any]) -> float:
    """The member of that name, or by its former name."""
    return float(row["phi"] if "phi" in row else row["bandwidth_share"])
