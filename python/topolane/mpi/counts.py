"""The counts of a watched program: its matrix, its calls, its time in MPI, and its recent rates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topolane.mpi.frames import MOST_CALLS, Records
from topolane.mpi.window import Window

MEMORY = 30.0
"""Seconds after which an interval has weight 1/e in a recent rate."""
KINDS = ("point-to-point, counted", "collective, modelled", "collective, counted", "one-sided, counted")
ONE_SIDED, FETCHED = 3, 4
"""A get is reported by the rank that requests it, but counts as sent by the other rank."""


class RankCounts:
    """The totals of one rank, and their recent rates.

    A rate is an exponentially weighted mean (e-folding time MEMORY). It measures time by interval lengths,
    because the clocks of two hosts differ.
    """

    def __init__(self) -> None:
        self.keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        """kind << 32 | peer, ascending."""
        self.sums: NDArray[np.uint64] = np.zeros((0, 3), np.uint64)
        """Messages, bytes and turns of each key."""
        self.calls: dict[int, tuple[int, int, float]] = {}
        """For each collective call: calls, bytes of this rank's buffers, seconds."""
        self.seconds = self.in_mpi = self.skew = 0.0
        self.dropped = 0
        self.windows: dict[str, Window] = {}
        """The window of each start of this rank."""
        self.gone = False
        """Whether the rank has sent a BYE."""
        self._recent: NDArray[np.float64] = np.zeros((0, 3))
        self._recent_in_mpi = self._weight = 0.0
        self._names, self._once = b"", True
        self._at: NDArray[np.intp] | slice = slice(None)
        """The keys of the previous interval, their positions, and whether no key occurs twice."""
        self._heard = 0.0
        self._length = 0.0

    def add(self, records: Records) -> None:
        """Adds an interval."""
        length = records.length
        fade = math.exp(-length / MEMORY)
        share = MEMORY * (1 - fade) / length if length > 0 else 1.0
        self._recent *= fade
        if len(records.peers):
            self._count(records.peers, share)
        for call, calls, size, seconds in records.calls:
            before = self.calls.get(call, (0, 0, 0.0))
            self.calls[call] = (before[0] + calls, before[1] + size, before[2] + seconds)
        self.seconds += length
        self.in_mpi += records.in_mpi
        self.skew += records.skew
        self._recent_in_mpi = self._recent_in_mpi * fade + records.in_mpi * share
        self._weight = self._weight * fade + MEMORY * (1 - fade)
        # Records that do not fit into one frame follow in further frames of length 0.
        self._heard, self._length = time.monotonic(), length or self._length

    def restore(self, keys: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None:
        """Restores stored totals. Recent rates start from zero."""
        self.keys, self.sums = keys.copy(), sums.reshape(len(keys), 3).copy()
        self._recent = np.zeros((len(keys), 3))
        self._names = b""

    def rates(self) -> tuple[NDArray[np.float64], float]:
        """Messages, bytes and turns per second of each key, and the fraction of time in MPI.

        A silence longer than an interval counts as time in which nothing was sent.
        """
        silence = max(0.0, time.monotonic() - self._heard - self._length)
        fade = math.exp(-silence / MEMORY)
        weight = self._weight * fade + MEMORY * (1 - fade)
        if weight <= 0:
            return self._recent, 0.0
        return self._recent * (fade / weight), self._recent_in_mpi * fade / weight

    def recent_in_mpi(self) -> float | None:
        """The recent fraction of its time in MPI; None if the rank has not reported since this manager
        started.
        """
        return min(1.0, self.rates()[1]) if self._weight > 0 else None

    def _count(self, peers: NDArray[np.uint64], share: float) -> None:
        counts = peers[:, 1:]
        names = peers[:, 0].tobytes()
        if names != self._names:
            # Most intervals have the same peers as the one before.
            at = self._places(peers[:, 0])
            self._once = len(set(at.tolist())) == len(at)
            in_order = np.array_equal(at, np.arange(len(self.keys)))
            self._names, self._at = names, slice(None) if in_order else at
        if self._once:
            self.sums[self._at] += counts
            self._recent[self._at] += counts * share
        else:
            at = self._places(peers[:, 0])
            np.add.at(self.sums, at, counts)
            np.add.at(self._recent, at, counts * share)

    def _places(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        known = len(self.keys)
        at = np.searchsorted(self.keys, keys)
        if known and at.max() < known and np.array_equal(self.keys[at], keys):
            return at
        every = np.union1d(self.keys, keys)
        old = np.searchsorted(every, self.keys)
        sums, recent = np.zeros((len(every), 3), np.uint64), np.zeros((len(every), 3))
        sums[old], recent[old] = self.sums, self._recent
        self.keys, self.sums, self._recent = every, sums, recent
        return np.searchsorted(every, keys)


@dataclass(frozen=True)
class Matrix:
    """The communication matrix, as parallel arrays with one entry for each pair of ranks that communicate."""

    ranks: int
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    counts: NDArray[np.float64]
    """Columns messages, bytes, turns: totals, or per second."""

    @property
    def messages(self) -> NDArray[np.float64]:
        """Messages of each entry."""
        return self.counts[:, 0]

    @property
    def bytes(self) -> NDArray[np.float64]:
        """Bytes of each entry."""
        return self.counts[:, 1]

    @property
    def turns(self) -> NDArray[np.float64]:
        """Turns of each entry."""
        return self.counts[:, 2]

    def csv(self) -> str:
        """The matrix as CSV, in the form that `topolane traffic` reads."""
        lines = [f"# ranks: {self.ranks}", f"# entries: {len(self.sender)}", "from,to,bytes,messages"]
        for sender, receiver, (messages, size, _) in zip(
            self.sender.tolist(), self.receiver.tolist(), self.counts.tolist()
        ):
            lines.append(f"{sender},{receiver},{size:.15g},{messages:.15g}")
        return "\n".join(lines) + "\n"


@dataclass
class WatchedProgram:
    """A program with everything that its ranks have reported."""

    id: str
    name: str
    ranks: int
    started: float
    """Seconds since 1970."""
    ended: float | None = None
    """When the last rank reached MPI_Finalize or was lost, in seconds since 1970; None before."""
    hosts: dict[int, str] = field(default_factory=dict)
    of_rank: dict[int, RankCounts] = field(default_factory=dict)
    epoch: int = 0
    sites: NDArray[np.uint16] | None = None
    """The site of each rank, as last sent to the ranks."""
    mpi: str = ""

    def rank(self, rank: int) -> RankCounts:
        """The counts of a rank, created on first use."""
        counts = self.of_rank.get(rank)
        if counts is None:
            counts = self.of_rank[rank] = RankCounts()
        return counts

    def matrix(self, kind: int | None = None) -> Matrix:
        """The totals of one kind, or of all kinds together."""
        return self._matrix(lambda one: one.sums, kind)

    def rates(self, kind: int | None = None) -> Matrix:
        """The recent rates per second of one kind, or of all kinds together."""
        return self._matrix(lambda one: one.rates()[0], kind)

    def calls(self) -> dict[int, tuple[int, int, float]]:
        """For each collective call, over all ranks: calls, bytes of their buffers, seconds."""
        total = np.zeros((MOST_CALLS, 3))
        for one in self.of_rank.values():
            for call, figures in one.calls.items():
                total[call] += figures
        return {
            int(call): (int(total[call, 0]), int(total[call, 1]), float(total[call, 2]))
            for call in np.flatnonzero(total[:, 0])
        }

    @property
    def observed(self) -> float:
        """Seconds for which the program was watched: the maximum over its ranks."""
        return max((one.seconds for one in self.of_rank.values()), default=0.0)

    def in_mpi(self) -> tuple[float, float]:
        """The fraction of all ranks' time in MPI, and the fraction spent waiting for the last rank in
        synchronising calls.
        """
        every = list(self.of_rank.values())
        seconds = sum(one.seconds for one in every) or 1.0
        return sum(one.in_mpi for one in every) / seconds, sum(one.skew for one in every) / seconds

    def _matrix(self, figures: Callable[[RankCounts], NDArray[Any]], wanted: int | None) -> Matrix:
        each = [(rank, one.keys.astype(np.int64), figures(one)) for rank, one in self.of_rank.items()]
        keys = np.concatenate([np.zeros(0, np.int64), *(keys for _, keys, _ in each)])
        counts = np.concatenate([np.zeros((0, 3)), *(counts for _, _, counts in each)])
        rank = np.repeat([rank for rank, _, _ in each], [len(keys) for _, keys, _ in each]).astype(np.int64)
        kind, peer = keys >> 32, keys & 0xFFFFFFFF
        fetched = kind == FETCHED
        pairs = np.where(fetched, peer, rank) * self.ranks + np.where(fetched, rank, peer)
        if wanted is not None:
            kept = np.where(fetched, ONE_SIDED, kind) == wanted
            pairs, counts = pairs[kept], counts[kept]
        unique, place = np.unique(pairs, return_inverse=True)
        summed = np.zeros((len(unique), 3))
        np.add.at(summed, place, counts)
        return Matrix(self.ranks, unique // self.ranks, unique % self.ranks, summed)
