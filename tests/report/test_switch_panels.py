"""Pictures of machines that are not trees: where switches stand, which jobs have a red bar, and what commands draw."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from topolane import Machine, machine
from topolane.cli import cli
from topolane.panels import panels_of
from topolane.report import MachinePicture
from topolane.report.figures import dragonfly, switches
from topolane.report.holders import held_by
from topolane.report.live_tree import DrawnHolder, svg
from topolane.report.style import SHARED
from topolane.report.switch_cells import MEETING, table

SCATTERED = """
name = "scattered"
[[site]]
name = "site"
[[site.switch]]
name = "d"
nodes = "n[1-2]"
[[site.switch]]
name = "a"
nodes = "n3"
[[site.switch]]
name = "f"
nodes = "n4"
[[site.switch]]
name = "top"
switches = "d,a,f"
[torus]
dimensions = [2, 3]
bandwidth = 1e9
routers = "a,b,c,d,e,f"
"""
GRIDS = (
    "torus(size=5x4)",
    "torus(size=3x4x5, nodes=2)",
    "torus(size=2x3x3x4)",
    "torus(size=8x4x8, cube=4x2x4)",
    "torus(size=4x4x4x4, cube=2x2x2x2)",
    "hyperx(size=6)",
    "hyperx(size=4x3, nodes=2)",
    "hyperx(size=3x3x2x2)",
)
ALL = (*GRIDS, "slingshot(nodes=60, groups=4, switches=5, cables=2)", "titan", "theta")


@pytest.mark.parametrize("name", ALL)
def test_every_switch_has_a_cell_of_its_own(name: str) -> None:
    """Each leaf is in one panel, inside its rows and columns, and no two are in one cell."""
    fabric = machine(name)
    panels = panels_of(fabric).panels
    leaves = [leaf for panel in panels for leaf in panel.leaves]
    assert sorted(leaves) == list(range(len(fabric.groups(1))))
    for panel in panels:
        assert len(set(panel.cells)) == len(panel.cells) == len(panel.leaves)
        assert all(0 <= cell < panel.columns * panel.rows for cell in panel.cells)


@pytest.mark.parametrize("name", GRIDS)
def test_neighbours_in_a_panel_are_joined_by_a_link(name: str) -> None:
    """The engine counts one hop between the nodes of two cells that are next to each other in a layer."""
    fabric = machine(name)
    layout = panels_of(fabric)
    across, down = layout.block
    for panel in layout.panels:
        node = {cell: fabric.groups(1)[leaf][0] for cell, leaf in zip(panel.cells, panel.leaves)}
        for cell, first in node.items():
            row, column = divmod(cell, panel.columns)
            if column + 1 < panel.columns and not (across and (column + 1) % across == 0):
                assert fabric.hops(first, node[cell + 1]) == 1
            if row + 1 < panel.rows and not (down and (row + 1) % down == 0):
                assert fabric.hops(first, node[cell + panel.columns]) == 1


def test_a_tree_has_no_panels_and_keeps_its_picture() -> None:
    assert panels_of(machine("cab")).panels == ()


def test_switches_stand_where_the_list_of_names_puts_them() -> None:
    """Leaves in another order than the grid's routers, some of which have no nodes: d, a and f of a, b, c / d, e, f."""
    (panel,) = panels_of(Machine.parse(SCATTERED, "scattered", "toml")).panels
    assert (panel.columns, panel.rows) == (3, 2)
    assert list(panel.leaves) == [0, 1, 2]
    assert list(panel.cells) == [3, 0, 5]


def test_a_red_bar_is_below_the_jobs_that_share_a_link() -> None:
    """On 4 x 4 in dimension order, job 1 at (0, 0) and (2, 0) passes (1, 0), as job 2 between (1, 0) and (2, 1) does.

    Job 3 has row 3 to itself, and job 4 one router.
    """
    picture = MachinePicture.of(machine("torus(size=4x4m)"))
    held = {1: (0, 8), 2: (4, 9), 3: (13, 14), 4: (3,)}
    state = held_by({job: [(node, node + 1) for node in nodes] for job, nodes in held.items()}, picture, 0.0)
    assert state.met == {1: [2], 2: [1]}
    drawn = switches.switches(picture, state, {job: f"job {job}" for job in held})
    (axes,) = drawn.axes
    bars = next(item for item in axes.items if item.gid == MEETING)
    assert bars.fill == SHARED and len(bars.lines) == 4
    assert (
        switches.facts(picture, state) == "7 of 16 nodes in use by 4 jobs. 2 jobs may meet another on a link."
    )
    assert table(picture, state)[1:] == [
        ["1", "2", "the only one", "2"],
        ["2", "2", "the only one", "1"],
        ["3", "2", "the only one", "–"],
    ]


@pytest.mark.parametrize("name", [*GRIDS, "hyperx(size=22x22, nodes=11)", "torus(size=24x24x9)"])
def test_all_nodes_are_drawn_once_inside_the_picture(name: str) -> None:
    """No cell of a node covers another or the bars, or is outside of the axes, also with 5,000 nodes."""
    picture = MachinePicture.of(machine(name))
    drawing = random.Random(1)
    order = list(range(picture.nodes))
    drawing.shuffle(order)
    jobs = {job: order[job::5] for job in range(4)}  # a fifth of the nodes is idle
    state = held_by({job: [(node, node + 1) for node in own] for job, own in jobs.items()}, picture, 0.0)
    (axes,) = switches.switches(picture, state, {job: str(job) for job in jobs}).axes
    cells = [line for item in axes.items if item.gid and item.gid != MEETING for line in item.lines]
    assert len(cells) == picture.nodes
    covered = cells + [line for item in axes.items if item.gid == MEETING for line in item.lines]
    boxes = sorted(
        (min(x for x, _ in each), max(x for x, _ in each), min(y for _, y in each), max(y for _, y in each))
        for each in covered
    )
    assert all(axes.x.low <= left < right <= axes.x.high for left, right, _, _ in boxes)
    assert all(axes.y.low <= low < high <= axes.y.high for _, _, low, high in boxes)
    for number, (_, right, low, high) in enumerate(boxes):
        near = itertools.takewhile(lambda other: other[0] < right - 1e-6, boxes[number + 1 :])  # noqa: B023
        assert not [other for other in near if other[2] < high - 1e-6 and low < other[3] - 1e-6]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("torus(size=4x4x4)", "plane"), ("tpu-v4", "cube"), ("hyperx(size=6x6, nodes=3)", "plane")],
)
def test_the_report_of_a_run_shows_planes_and_cubes(tmp_path: Path, name: str, kind: str) -> None:
    """`compare --out` draws each run, and its caption says what a panel is."""
    out = tmp_path / "report"
    words = [
        "compare",
        "--machine",
        name,
        "--workload",
        "exp-4",
        "--limit",
        "60",
        "--policies",
        "first-fit,isolated",
    ]
    done = CliRunner().invoke(cli, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text()
    assert len(list((out / "figures").glob("switches-*.svg"))) >= 2
    assert f"A panel is a {kind}" in page


@pytest.mark.parametrize(
    "name", ["hyperx(size=6x6, nodes=3)", "slingshot(nodes=32, groups=4, switches=4, cables=2)"]
)
def test_a_live_system_that_is_no_tree_is_not_drawn_as_one(name: str) -> None:
    """`status --svg` draws panels with the names of jobs; red are only jobs that the engine lets meet."""
    holders = {
        1: DrawnHolder([0, 4], "job one", "tip of one"),
        2: DrawnHolder([20, 21], "job two", "tip of two"),
    }
    text = svg(machine(name), holders, title="12:00: ")
    drawn = "".join(ElementTree.fromstring(text).itertext())
    assert "tip of one" in drawn and "job one: 2 nodes" in drawn
    assert "No job may meet another on a link." in drawn
    assert "leaf" not in drawn


def test_loads_of_a_dragonfly_are_refused_in_a_sentence(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("id,nodes,pattern\n7,slingshot[1-20],alltoall\n")
    words = ["links", "--machine", "slingshot(nodes=32, groups=4, switches=4, cables=2)", "--jobs", str(jobs)]
    done = CliRunner().invoke(cli, [*words, "--picture", str(tmp_path / "loads.svg")], standalone_mode=False)
    assert "loads are drawn on trees only, and the machine is a dragonfly" in str(done.exception)


def test_groups_of_a_dragonfly_have_the_bars_too() -> None:
    """Two jobs that share a link inside a group have bars, though no line between groups is red."""
    picture = MachinePicture.of(machine("slingshot(nodes=32, groups=4, switches=4, cables=2)"))
    state = held_by({1: [(0, 1), (2, 3)], 2: [(1, 2), (3, 4)]}, picture, 0.0)
    (axes,) = dragonfly.dragonfly(picture, state, {1: "one", 2: "two"}).axes
    (bars,) = [item for item in axes.items if item.gid == MEETING]
    assert len(bars.lines) == 2
    assert not [item for item in axes.items if item.stroke == SHARED]
