"""The boxes that show jobs on a floor plan: few large boxes instead of a cell for each GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .gpus import DUST, Gpu, GpuState
from .marks import Box
from .rack_layout import Column, RackLayout
from .style import MUTED

LARGE = 40_000
"""On a machine with more GPUs than this, neighbouring cells of several small jobs of one colour form one box.
"""


def boxes(
    layout: RackLayout, state: GpuState, hovered: Iterable[int]
) -> Iterator[tuple[str, str, list[Box]]]:
    """The boxes of jobs and failed nodes, as (gid, colour, boxes) grouped by colour and width. Neighbouring
    cells of one job form one box.
    """
    hovered = set(hovered)
    is_large = sum(map(len, state.gpus)) > LARGE
    found: dict[tuple[str, str], list[Box]] = {}

    def gid_of(holder: int | str) -> tuple[str, str]:
        if isinstance(holder, str):
            return holder, MUTED if holder == "failed" else f"#{holder.removeprefix('jobs-')}"
        colour = state.colour[holder]
        return (f"job-{holder}" if holder in hovered else f"jobs-{colour[1:]}"), colour

    def kind_of(gpu: Gpu) -> int | str | None:
        if gpu.failed:
            return "failed"
        if not is_whole(gpu):
            return None
        job = gpu.holders[0][0]
        return gid_of(job)[0] if is_large and job not in hovered else job

    for column in layout.columns:
        rows = [_runs([kind_of(gpu) for gpu in state.gpus[node]]) for node in column.nodes]
        for holder, box in _whole(column, rows, layout.cell):
            found.setdefault(gid_of(holder), []).append(box)
        for job, box in parts(column, layout, state):
            found.setdefault(gid_of(job), []).append(box)

    def looks(item: tuple[tuple[str, str], list[Box]]) -> tuple[bool, str, float]:
        (gid, colour), ((left, right, *_), *_) = item
        return gid == "failed", colour, right - left

    for (gid, colour), shapes in sorted(found.items(), key=looks):
        yield gid, colour, shapes


def is_whole(gpu: Gpu) -> bool:
    """Whether one job holds the GPU entirely."""
    return len(gpu.holders) == 1 and gpu.holders[0][1] > 1.0 - DUST


RunOfCells = tuple[int, int, "int | str"]
"""The first cell of the run, the cell after its last, and its holder: a job or a gid."""


def _runs(kinds: Sequence[int | str | None]) -> set[RunOfCells]:
    runs: set[RunOfCells] = set()
    start = 0
    for index in range(1, len(kinds) + 1):
        if index == len(kinds) or kinds[index] != kinds[start]:
            if (kind := kinds[start]) is not None:
                runs.add((start, index, kind))
            start = index
    return runs


def _whole(
    column: Column, rows: Sequence[set[RunOfCells]], cell: tuple[float, float]
) -> Iterator[tuple[int | str, Box]]:
    """Joins equal runs in consecutive rows into one box, slightly smaller than its cells."""
    wide, high = cell
    gap = min(0.3, 0.06 * wide)
    tops: dict[RunOfCells, int] = {}
    for row, runs in enumerate([*rows, set()]):
        for run in [run for run in tops if run not in runs]:
            first, last, kind = run
            left, right = column.x + first * wide + gap, column.x + last * wide - gap
            yield kind, (left, right, column.y + tops.pop(run) * high + gap, column.y + row * high - gap)
        for run in sorted(runs, key=lambda run: run[:2]):
            tops.setdefault(run, row)


def parts(column: Column, layout: RackLayout, state: GpuState) -> Iterator[tuple[int, Box]]:
    """The parts of shared GPUs by job, from the bottom of the cell up."""
    wide, high = layout.cell
    for row, node in enumerate(column.nodes):
        for gpu in state.gpus[node]:
            if gpu.failed or is_whole(gpu):
                continue
            left, bottom = column.x + gpu.index * wide, column.y + (row + 1) * high
            for job, part in gpu.holders:
                yield job, (left, left + wide, bottom - part * high, bottom)
                bottom -= part * high
