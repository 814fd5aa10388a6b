"""The file with a watched program's matrix. `topolane mpi run` writes it; all commands that read traffic read
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topolane import parsing, texts
from topolane._engine import InputError, Traffic
from topolane.mpi.calls import names
from topolane.mpi.counts import WatchedProgram

KINDS = ("point_to_point", "modelled", "two_level", "one_sided")
"""Kinds of traffic in the protocol. They name the file's columns."""
FIGURES = ("messages", "bytes", "turns")
COLUMNS = (
    "from",
    "to",
    "bytes",
    "messages",
    "turns",
    *(f"{kind}_{one}" for kind in KINDS for one in FIGURES),
)
MARK = "# topolane mpi:"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SIGN = re.compile(r"(?<!\w)[=+@-]")


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run other than its matrix."""

    program: str
    name: str
    mpi: str
    ranks: int
    hosts: list[str]
    """The host of each rank; empty if the rank never reported."""
    seconds: list[float]
    """Seconds of each rank from MPI_Init to MPI_Finalize, or to its last report."""
    in_mpi: list[float]
    """Seconds of each rank in watched calls, summed over its threads."""
    skew: list[float]
    """Seconds of each rank that were spent waiting for other ranks in synchronising collectives."""
    calls: dict[str, tuple[int, int, float]]
    """By name of a call: calls, bytes of the ranks' own buffers and seconds, summed over all ranks."""
    unfinished: list[int]
    """Ranks that did not reach MPI_Finalize. Up to one interval of their counts is missing."""


@dataclass(frozen=True)
class Recorded:
    """The matrix of a run. Entries are ordered by (sender, receiver)."""

    about: RunFacts
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    counts: NDArray[np.float64]
    """Messages, bytes and turns of each entry, by kind."""

    def total(self, figure: str) -> NDArray[np.float64]:
        """Messages, bytes or turns of each entry, summed over all kinds."""
        total: NDArray[np.float64] = self.counts[:, :, FIGURES.index(figure)].sum(axis=1)
        return total

    def text(self) -> str:
        """The text of the file."""
        lines = [
            f"# ranks: {self.about.ranks}",
            f"# entries: {len(self.sender)}",
            f"{MARK} {_without_formulas(json.dumps(asdict(self.about)))}",
            ",".join(COLUMNS),
        ]
        totals = np.stack([self.total(name) for name in ("bytes", "messages", "turns")], axis=1)
        rows = np.concatenate(
            [totals, self.counts.reshape(len(self.sender), len(KINDS) * len(FIGURES))], axis=1
        )
        for sender, receiver, row in zip(self.sender.tolist(), self.receiver.tolist(), rows.tolist()):
            lines.append(",".join([str(sender), str(receiver), *(f"{value:.0f}" for value in row)]))
        return "\n".join(lines) + "\n"


def _without_formulas(text: str) -> str:
    """The same JSON, escaped so that no cell is a formula in a spreadsheet that splits the line at commas."""
    return _STRING.sub(lambda one: _SIGN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", one[0]), text)


def of(program: WatchedProgram) -> Recorded:
    """The matrix and facts of a program in a receiver."""
    every = [program.of_rank.get(rank) for rank in range(program.ranks)]
    known = names()
    about = RunFacts(
        program=program.id,
        name=program.name,
        mpi=program.mpi,
        ranks=program.ranks,
        hosts=[program.hosts.get(rank, "") for rank in range(program.ranks)],
        seconds=[one.seconds if one else 0.0 for one in every],
        in_mpi=[one.in_mpi if one else 0.0 for one in every],
        skew=[one.skew if one else 0.0 for one in every],
        calls={known.get(call, f"call {call}"): figures for call, figures in program.calls().items()},
        unfinished=[rank for rank, one in enumerate(every) if one is None or not one.gone],
    )
    whole = program.matrix()
    pairs = whole.sender * program.ranks + whole.receiver
    counts = np.zeros((len(pairs), len(KINDS), len(FIGURES)))
    for kind in range(len(KINDS)):
        part = program.matrix(kind)
        counts[np.searchsorted(pairs, part.sender * program.ranks + part.receiver), kind] = part.counts
    return Recorded(about, whole.sender, whole.receiver, counts)


def read(path: str | Path) -> Recorded:
    """Reads a file that `topolane mpi run` wrote. Raises InputError, with the line, for any other file."""
    text = texts.read_text(path, texts.LARGE)
    traffic = Traffic.parse(text, str(path))  # its errors name the line of wrong ranks and totals
    lines = text.split("\n")  # lines as the engine counts them; `splitlines` splits at other characters too
    about = _about(lines, str(path))
    if about.ranks != traffic.ranks:
        raise InputError(f"{path}: a matrix of {traffic.ranks} ranks, of a run that had {about.ranks}")
    at = next(place for place, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    if tuple(lines[at].strip().split(",")) != COLUMNS:
        raise InputError(f"{path}:{at + 1}: the columns are not those of `topolane mpi run`")
    table = _table(lines, at + 1, str(path))
    counts = table[:, 5:].reshape(len(table), len(KINDS), len(FIGURES))
    return Recorded(about, table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), counts)


def _table(lines: Sequence[str], begin: int, path: str) -> NDArray[np.float64]:
    rows = []
    for at, line in enumerate(lines[begin:], begin + 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = [float(cell) for cell in line.split(",")]
        except ValueError as error:
            raise InputError(f"{path}:{at}: {texts.shown(line)} holds what is no number") from error
        if len(row) != len(COLUMNS):
            raise InputError(f"{path}:{at}: {len(row)} cells, where the header names {len(COLUMNS)}")
        if not np.isfinite(row).all() or min(row) < 0:
            raise InputError(f"{path}:{at}: {texts.shown(line)}: counts are numbers from 0")
        rows.append(row)
    return np.array(rows).reshape(len(rows), len(COLUMNS))


def _about(lines: Sequence[str], path: str) -> RunFacts:
    for at, line in enumerate(lines):
        if line.startswith(MARK):
            try:
                about = RunFacts(**parsing.parse_json(line.removeprefix(MARK), path, at + 1))
                _check(about)
            except (TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}:{at + 1}: what `topolane mpi run` wrote of the run is damaged"
                ) from error
            return about
    raise InputError(f"{path}: no line {MARK!r}: not a matrix that `topolane mpi run` wrote")


def _check(about: RunFacts) -> None:
    """Checks the facts. Raises TypeError or ValueError if the line is damaged."""
    for word in (about.program, about.name, about.mpi, *about.hosts, *about.calls):
        if not isinstance(word, str):
            raise TypeError("not a text")
    if not all(isinstance(rank, int) for rank in about.unfinished):
        raise TypeError("not a rank")
    each: list[list[Any]] = [about.hosts, about.seconds, about.in_mpi, about.skew]
    if any(len(one) != about.ranks for one in each):
        raise ValueError("not one for every rank")
    sum(about.seconds + about.in_mpi + about.skew)
    for calls, size, seconds in about.calls.values():
        calls + size + seconds
