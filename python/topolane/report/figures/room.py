"""How many more jobs of each size would have fitted, in the mean over the run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from topolane.units import decimal, percent

from ..data import MachinePicture, Run
from ..plot import WIDTH, Plot, empty, figure, label
from ..room import fits, place_of, sizes, with_room
from ..style import MUTED, SERIES, series

NAME = "room-for-jobs"
TITLE = "Room for more jobs"
WORDS = (
    "Left: how many more jobs of a size would have fitted, in the mean over the time in which jobs were submitted. Each size has the "
    "machine for itself, so the numbers cannot be added. Right: the share of that time in which at least one fitted. Above "
    "the sizes is the closest place in which such jobs fit on this machine; “segments” are parts of a job in one domain each."
)
MARKERS = "osD^vP*X"


def draw(runs: Sequence[Run], picture: MachinePicture) -> Plot:
    """A line for each run over the sizes of jobs in GPUs."""
    runs = with_room(runs)
    if not runs or not (shown := sizes(runs)):
        reason = "No run was looked at while it had room."
        return Plot(NAME, TITLE, WORDS, reason, empty(reason))
    places = [place_of(runs, size) for size in shown]
    found = [[fits(run, size, place) for size, place in zip(shown, places)] for run in runs]
    drawn = figure(WIDTH, 3.6 + 0.2 * (len(runs) > 6))
    number, share = drawn.subplots(1, 2)
    positions = range(len(shown))
    for index, (run, values) in enumerate(zip(runs, found)):
        looks = {
            "color": series(index),
            "marker": MARKERS[(index + index // len(SERIES)) % len(MARKERS)],
            "markersize": 4.5,
            "linewidth": 1.3,
            "linestyle": ("-", (0, (5, 1.5)))[index % 2],
        }
        number.plot(positions, [jobs for jobs, _ in values], label=label(run), **looks)
        share.plot(positions, [100 * part for _, part in values], **looks)
    number.set_yscale("symlog", linthresh=0.1, linscale=0.5)
    number.set_ylim(bottom=0)
    number.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    number.set_title("Jobs that fit, in the mean", pad=16)
    share.set_title("Share of time in which one fits (%)", pad=16)
    share.set_ylim(0, 103)
    for axes in (number, share):
        axes.set_xticks(positions, [f"{size:,}" for size in shown], fontsize=7)
        axes.set_xlabel("GPUs of the job")
        _name_places(axes, places)
    drawn.legend(loc="outside upper left", ncols=min(len(runs), 4), borderaxespad=0)
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


def _name_places(axes: Axes, places: Sequence[str]) -> None:
    """Where jobs lie, above the sizes that lie there, with a line where that changes."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[start]:
            text = {"site": "anywhere", "segments": "in segments"}.get(places[start], f"in a {places[start]}")
            middle = (start + end - 1) / 2
            axes.annotate(
                text if end - start > 1 else text.removeprefix("in a "),
                (middle, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="right" if end == len(places) and end - start == 1 else "center",
                fontsize=7.5,
                color=MUTED,
            )
            if end < len(places):
                axes.axvline(end - 0.5, color=MUTED, linewidth=0.8, linestyle=(0, (3, 2)))
            start = end
