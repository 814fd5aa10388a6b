"""The file of the dedicated links of running jobs. Slurm does not store them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topolane import files, parsing
from topolane._engine import InputError, Machine
from topolane.live.allocation import Allocation, BandwidthHistory


class DedicatedLinksFile:
    """The jobs with dedicated links, in a file that `topolane routes` can read."""

    def __init__(self, file: str, machine: Machine) -> None:
        self._file, self._machine = file, machine
        self._last: dict[int, Allocation] | None = None
        """The content of the file, once this process has written it."""

    def read(self) -> dict[int, Allocation]:
        """What an earlier daemon allocated to jobs that may still run. Raises InputError if the file is damaged."""
        path = Path(self._file)
        if not path.exists():
            return {}
        given = parsing.read_json(path)
        try:
            return {
                int(row["id"]): Allocation(
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

    def keep(self, jobs: Mapping[int, Allocation]) -> None:
        """Writes these jobs, if they have changed. Raises InputError if that fails."""
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


def _share(row: dict[str, Any] | None) -> BandwidthHistory | None:
    if row is None:
        return None
    return BandwidthHistory(
        float(row["begin"]), float(row["since"]), _bandwidth_share(row), float(row["had"])
    )


def _bandwidth_share(row: dict[str, Any]) -> float:
    """The key `bandwidth_share`, or its former name `phi`."""
    return float(row["phi"] if "phi" in row else row["bandwidth_share"])
