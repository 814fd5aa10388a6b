"""The picture of a dragonfly: who may use the cables between groups, and what the report shows of a run."""

from __future__ import annotations

from click.testing import CliRunner
from topolane import machine
from topolane.cli import cli
from topolane.report import MachinePicture
from topolane.report.figures import dragonfly
from topolane.report.holders import held_by
from topolane.report.style import FAINT, SHARED

FOUR_GROUPS = "slingshot(nodes=32, groups=4, switches=4, cables=2)"


def picture() -> MachinePicture:
    return MachinePicture.of(machine(FOUR_GROUPS))


def test_a_job_may_use_the_cables_of_all_pairs_of_its_groups():
    """Groups have 8 nodes. Job 1 has nodes in groups 0 and 1, job 2 in 1, 2 and 3, job 3 in 1 and 2, job 4 in 3 alone.

    Inside group 1, jobs 1 and 2 both go from router 0 to router 1, which has cables to groups 0 and 3.
    """
    nodes = {1: [(0, 2), (8, 9)], 2: [(9, 10), (16, 17), (24, 25)], 3: [(10, 11), (17, 18)], 4: [(26, 32)]}
    state = held_by(nodes, picture(), 0.0)
    users = dragonfly.users_of_pairs(state, picture())
    assert users == {(0, 1): [1], (1, 2): [2, 3], (1, 3): [2], (2, 3): [2]}
    assert dragonfly.facts(picture(), state) == (
        "14 of 32 nodes in use by 4 jobs. Jobs may use the cables between 4 of 6 pairs of groups; two or more may "
        "meet on those of 1. 3 jobs may meet another on a link."
    )
    drawn = dragonfly.dragonfly(picture(), state, {job: f"job {job}" for job in nodes})
    (axes,) = drawn.axes
    lines = {item.stroke: len(item.lines) for item in axes.items if item.stroke}
    assert lines[SHARED] == 1 and lines[FAINT] == 2
    assert sum(lines.values()) == 6


def test_all_nodes_are_drawn_inside_the_picture():
    """Also of a machine with groups of different sizes, and of one with many groups."""
    for name in (FOUR_GROUPS, "theta", "slingshot(nodes=960, groups=60, switches=16, cables=1)"):
        whole = MachinePicture.of(machine(name))
        state = held_by({1: [(0, whole.nodes)]}, whole, 0.0)
        (axes,) = dragonfly.dragonfly(whole, state, {1: "job 1"}).axes
        cells = next(item for item in axes.items if item.gid == "job-1")
        assert len(cells.lines) == whole.nodes
        assert all(
            axes.x.low <= x <= axes.x.high and axes.y.low <= y <= axes.y.high
            for cell in cells.lines
            for x, y in cell
        )


def test_the_report_of_a_run_with_contention_shows_the_dragonfly(tmp_path):
    """`compare --network congestion` needs no other option on a dragonfly, and its report has a picture of each run."""
    out = tmp_path / "report"
    done = CliRunner().invoke(
        cli,
        ["compare", "--machine", FOUR_GROUPS, "--workload", "exp-4", "--jobs", "60", "--policies",
         "first-fit,level-spread,isolated,least-slowdown", "--network", "congestion", "--out", str(out)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text()
    assert page.count('id="dragonfly-') >= 4 or len(list((out / "figures").glob("dragonfly-*.svg"))) == 4
    assert "the table names whom" in page
