"""The mean number of further jobs of each size that would have fitted during the run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topolane.units import decimal, percent

from ..axes import DASHED, MARKERS, Axes, Guide, Spot
from ..chart import Figure, LegendEntry
from ..data import MachinePicture, ReportedRun
from ..plot import WIDTH, Plot, colours_of, empty, label
from ..room import fits, place_of, sizes, with_room
from ..scale import WHOLE, AxisScale, linear
from ..style import MUTED, SERIES

NAME = "room-for-jobs"
TITLE = "Room for more jobs"
WORDS = (
    "Left: how many more jobs of a size would have fitted, in the mean over the time in which jobs were submitted. Each size has the "
    "machine for itself, so the numbers cannot be added. Right: the share of that time in which at least one fitted. Above "
    "the sizes is the closest place in which such jobs fit on this machine; “segments” are parts of a job in one domain each."
)
LEAST = 0.1
"""The scale is linear up to this number of jobs."""


def draw(runs: Sequence[ReportedRun], picture: MachinePicture) -> Plot:
    """A line for each run over the sizes of jobs in GPUs."""
    runs = with_room(runs)
    if not runs or not (shown := sizes(runs)):
        reason = "No run was looked at while it had room."
        return Plot(NAME, TITLE, WORDS, reason, empty(reason))
    places = [place_of(runs, size) for size in shown]
    found = [[fits(run, size, place) for size, place in zip(shown, places)] for run in runs]
    drawn = Figure(WIDTH, 3.6 + 0.2 * (len(runs) > 6))
    number, share = drawn.grid(1, 2)
    entries, colours = [], colours_of(runs)
    for index, (run, values) in enumerate(zip(runs, found)):
        entry = LegendEntry(
            label(run),
            colours[index],
            1.3,
            ((), DASHED)[index % 2],
            (index + index // len(SERIES)) % len(MARKERS),
        )
        entries.append(entry)
        _line(number, [jobs for jobs, _ in values], entry)
        _line(share, [100 * part for _, part in values], entry)
    number.title, share.title = "Jobs that fit, in the mean", "Share of time in which one fits (%)"
    number.y = _jobs(max(jobs for values in found for jobs, _ in values))
    share.y = linear(0.0, 103.0, most=6, steps=WHOLE)
    half = 0.04 * max(len(shown) - 1, 1) + 0.02
    sizes_of = [(float(place), f"{size:,}") for place, size in enumerate(shown)]
    for axes in (number, share):
        axes.x, axes.x_name = AxisScale(-half, len(shown) - 1 + half, sizes_of), "GPUs of the job"
        axes.above, axes.x_size = 18.0, 7.0
        _name_places(axes, places)
    drawn.legend(entries, 4, above=True)
    rows = [
        [run.label, *(f"{decimal(jobs)} / {percent(part)}" for jobs, part in values)]
        for run, values in zip(runs, found)
    ]
    heading = ["run: jobs / time", *(f"{size:,} GPUs ({place})" for size, place in zip(shown, places))]
    alt = "; ".join(
        f"{run.label}: {', '.join(f'{size:,} GPUs {decimal(jobs)}' for size, (jobs, _) in zip(shown, values))}"
        for run, values in zip(runs, found)
    )
    return Plot(NAME, TITLE, WORDS, alt, drawn, numbers=[heading, *rows])


def _line(axes: Axes, values: Sequence[float], entry: LegendEntry) -> None:
    points = [(float(place), value) for place, value in enumerate(values)]
    axes.line(points, entry.colour, entry.width, entry.dash)
    for x, y in points:
        axes.items.append(Spot(x, y, 2.2, entry.colour, entry.colour, entry.marker or 0))


def _jobs(most: float) -> AxisScale:
    """A scale for numbers of jobs, linear up to `LEAST` and logarithmic above."""

    def place(jobs: float) -> float:
        return jobs / LEAST / 2 if jobs < LEAST else 0.5 + math.log10(jobs / LEAST)

    top = max(most, LEAST) * 1.3
    ticks = [0.0, *(10.0**power for power in range(-1, math.floor(math.log10(top)) + 1))]
    return AxisScale(0.0, top, [(tick, f"{tick:,g}") for tick in ticks], place)


def _name_places(axes: Axes, places: Sequence[str]) -> None:
    """Writes above the sizes where such jobs fit, with a line between different places."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[start]:
            text = {"site": "anywhere", "segments": "in segments"}.get(places[start], f"in a {places[start]}")
            middle = (start + end - 1) / 2
            axes.text(
                middle,
                1.0,
                text if end - start > 1 else text.removeprefix("in a "),
                size=7.5,
                colour=MUTED,
                anchor="end" if end == len(places) and end - start == 1 else "middle",
                rise="bottom",
                offset=(0.0, -2.0),
                shares="y",
            )
            if end < len(places):
                axes.items.append(Guide(end - 0.5, upright=True, width=0.8, dash=(2.4, 1.6)))
            start = end
