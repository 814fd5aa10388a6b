"""What the report says of the room on machines with GPUs is what the summaries say."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from gpu_runs import gpu_run, racks
from topolane.report import ReportedRun, write_report
from topolane.report.axes import Axes
from topolane.report.figures import room, stranded
from topolane.report.marks import Outline
from topolane.report.room import place_of, sizes

LEVELS = ["node", "domain", "segments", "leaf", "site"]
ROOM = {
    "gpus": 36.0,
    "free": 9.5,
    "levels": LEVELS,
    "fits": [
        {"size": 4, "jobs": [2.0] * 5, "share_of_time": [0.9] * 5},
        {"size": 8, "jobs": [0.0, 1.5, 1.5, 1.5, 1.75], "share_of_time": [0.0, 0.5, 0.5, 0.5, 0.6]},
        {"size": 16, "jobs": [0.0, 0.0, 0.25, 0.0, 0.5], "share_of_time": [0.0, 0.0, 0.125, 0.0, 0.25]},
        {"size": 32, "jobs": [0.0] * 5, "share_of_time": [0.0] * 5},
    ],
    "stranded": {"without_cores": 1.5, "without_memory": 0.25, "scraps": 3.0, "left_over_from_segments": 8.0},
    "largest": {"id": 7, "nodes": 4, "share_of_time": 0.125},
}
FAILURES = {"failures": 9, "interruptions": 8, "absorbed": 6, "node_seconds_lost": 7200.0}


@pytest.fixture
def two() -> list[ReportedRun]:
    """A run with failures and one without, that has room for larger jobs."""
    run = gpu_run(("0-3", "", ""))
    more = copy.deepcopy(ROOM)
    more["fits"][3] = {"size": 32, "jobs": [0.0] * 4 + [0.5], "share_of_time": [0.0] * 4 + [0.25]}
    one = dataclasses.replace(run, label="one", summary={**run.summary, "room": ROOM, "failures": FAILURES})
    return [one, dataclasses.replace(run, label="other", summary={**run.summary, "room": more})]


def test_sizes_are_those_that_fitted_and_their_places_the_closest(two):
    assert sizes(two) == [8, 16, 32] and sizes(two[:1]) == [8, 16]
    assert [place_of(two, size) for size in (4, 8, 16, 32)] == ["node", "domain", "segments", "site"]


def heights(axes: Axes) -> list[list[float]]:
    """The values of each line."""
    lines = (item.lines[0] for item in axes.items if isinstance(item, Outline))
    return [[y for _, y in line] for line in lines]


def test_the_lines_are_the_means_and_shares_of_the_summary(two):
    plot = room.draw(two, racks())
    number, share = plot.figure.axes
    assert heights(number) == [[1.5, 0.25, 0.0], [1.5, 0.25, 0.5]]
    assert heights(share) == [[50.0, 12.5, 0.0], [50.0, 12.5, 25.0]]
    assert plot.numbers == [
        ["run: jobs / time", "8 GPUs (domain)", "16 GPUs (segments)", "32 GPUs (site)"],
        ["one", "1.50 / 50.0 %", "0.25 / 12.5 %", "0.00 / 0.0 %"],
        ["other", "1.50 / 50.0 %", "0.25 / 12.5 %", "0.50 / 25.0 %"],
    ]


def test_stranded_gpus_add_up_and_absorbed_failures_are_a_share(two):
    plot = stranded.draw(two, racks())
    bars = [shape.lines[0] for shape in plot.figure.axes[0].items if shape.lines[0][0][1] < 0]
    assert sum(right - left for (left, _), _, (right, _), _ in bars) == 1.5 + 0.25 + 3.0
    assert max(right for _, _, (right, _), _ in bars) == 4.75
    own = ["10", "1.5", "0.2", "3.0", "8.0", "12.5 %"]
    assert plot.numbers[1:] == [["one", *own, "8", "75.0 %", "2"], ["other", *own, "–", "–", "–"]]


def test_the_page_has_the_section_only_where_runs_know_their_room(two, tmp_path):
    text = write_report(tmp_path, two, racks()).read_text("utf-8")
    assert "What more would have fitted" in text and 'id="stranded-gpus"' in text
    without = [dataclasses.replace(run, summary={"mean_wait": 1.0}) for run in two]
    text = write_report(tmp_path, without, racks()).read_text("utf-8")
    assert "What more would have fitted" not in text and 'id="racks-2"' in text
    assert not list(tmp_path.glob("figures/stranded*")) and not list(tmp_path.glob("figures/room*"))
