"""Rails on the picture of the tree: a line for each rail up to where they meet, and who uses the links at its foot."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import topolane
from networks import links_of, on_network
from schedules import make_run, picture
from topolane.report import MachinePicture
from topolane.report.figures import link_heat
from topolane.report.figures.fat_tree import tree, words
from topolane.report.heat import HeatScale
from topolane.report.holders import held_by
from topolane.report.rail_lines import colour
from topolane.report.style import FAINT, SHARED

JOBS = {1: [(0, 6)], 2: [(4, 5), (8, 9)], 3: [(20, 21)]}
JOINED = """
name = "small"

[[site]]
name = "rails"
children = [4, 3]
parents = [4, 2]
cables = [1, 1]
joined = [false, true]
"""


def parts(shape: MachinePicture):
    """The axes of the picture of three jobs, and by gid the lines of rails: colour and number."""
    state = held_by(JOBS, shape, 0.0)
    axes = tree(shape, state, {job: str(job) for job in JOBS}).axes[0]
    lines = {
        shape.gid: (shape.stroke, len(shape.lines))
        for shape in axes.items
        if (shape.gid or "").startswith("rail-")
    }
    return axes, state, lines


def test_every_group_has_a_line_of_each_rail_in_its_colour():
    """Pale where no job uses the links; above the level at which rails meet there is one line as without rails."""
    shape = dataclasses.replace(picture((4, 3, 2)), rails=(2, 1, 1))
    _, state, lines = parts(shape)
    used = sum(bool(jobs) for jobs in state.crossing[0])
    for rail in range(2):
        assert lines[f"rail-0-{rail}"] == (colour(rail), used)
        assert lines[f"rail-0-{rail}-unused"] == (colour(rail), len(shape.levels[0]) - used)
    assert set(lines) == {f"rail-0-{rail}{kind}" for rail in range(2) for kind in ("", "-unused")}
    _, _, apart = parts(dataclasses.replace(shape, rails=(2, 2, 2)))
    assert {name.split("-")[1] for name in apart} == {"0", "1"}


def test_shared_links_are_red_at_the_foot_and_jobs_have_their_colour():
    shape = dataclasses.replace(picture((4, 3, 2)), rails=(3, 3, 3))
    axes, state, _ = parts(shape)
    feet: dict[str, int] = {}
    for shape in axes.items:
        if shape.gid is None and shape.fill:
            feet[shape.fill] = feet.get(shape.fill, 0) + len(shape.lines)
    groups = [len(jobs) for level in state.crossing[:2] for jobs in level]
    assert feet[SHARED] == sum(jobs > 1 for jobs in groups) > 0
    assert feet[FAINT] == groups.count(0)
    own = [state.colour[jobs[0]] for level in state.crossing[:2] for jobs in level if len(jobs) == 1]
    assert {each: feet.get(each) for each in own} == {each: own.count(each) for each in own}


def test_loads_have_their_rails_beneath():
    """Under the links of every group a line for each rail, as wide as the columns of its switches."""
    sizes = (4, 3, 2)
    shape = dataclasses.replace(picture(sizes), rails=(2, 1, 1))
    run = on_network(make_run(tree=sizes, count=20), links_of(sizes, (2, 2, 2), (1, 1, 1)))
    axes = link_heat.draw(run, shape, HeatScale(0.04), 1).figure.axes[0]
    lines = {shape.gid: shape for shape in axes.items if (shape.gid or "").startswith("rail-")}
    assert set(lines) == {"rail-1-0", "rail-1-1"}
    first, second = (
        [(left, right) for (left, _), (right, _) in lines[f"rail-1-{rail}"].lines] for rail in range(2)
    )
    assert [len(first), len(second)] == [6, 6]
    assert [right for _, right in first] == pytest.approx([left for left, _ in second])
    assert [end[1] - start[0] for start, end in zip(first, second)] == pytest.approx([0.84] * 6)
    assert [lines[f"rail-1-{rail}"].stroke for rail in range(2)] == [colour(0), colour(1)]


def test_rails_are_those_of_the_machine():
    """nvl72: four that never meet; the file below: four up to the switches where they meet; a tree without: none."""
    assert MachinePicture.of(topolane.machine("nvl72(units=1)")).rails == [4, 4]
    assert not MachinePicture.of(topolane.machine("cab")).rails
    assert "rail" in words(MachinePicture.of(topolane.machine("nvl72(units=1)")))
    assert "rail" not in words(picture())


def test_rails_that_meet_have_one_bar_there(tmp_path: Path):
    file = tmp_path / "machine.toml"
    file.write_text(JOINED)
    shape = MachinePicture.of(topolane.machine(str(file)))
    assert shape.rails == [4, 1]
    axes, _, lines = parts(dataclasses.replace(picture((8, 3)), rails=shape.rails))
    bars = [shape for shape in axes.items if shape.gid is None and shape.round_ends]
    assert len(bars) == 1 and len(lines) == 8
