"""The rows of `topolane paper sc18`: what agrees, what fails, what is given."""

from __future__ import annotations

import copy
import json

import pytest
from topolane.cli import cli
from topolane_studies import PaperRow, sc18, sc18_figures, sc18_rows, sc18_waits
from topolane_studies.sc18 import AWARE, OBLIVIOUS, V1, V2

HOUR = 3600.0
OVERLOADED = ["Sep Cab", "Aug-2x Cab", "Nov-2x Cab", "Aug-3x Pinot"]


TURNAROUND = {AWARE: 1.1, "5 %": 1.05, "10 %": 1.0, "20 %": 0.9}


def aph(pair: sc18.Pair, column: str) -> dict[str, tuple[int, float]]:
    """Aware near the least up to 324 nodes; oblivious far above it, and more so on Pinot."""
    if column == OBLIVIOUS:
        return {f"aph {size}": (10, 35.0 if pair.machine == "pinot" else 30.0) for size in sc18.CLASSES}
    return {"aph up to 18": (10, 10.0), "aph 19-324": (10, 10.0), "aph over 324": (10, 12.0)}


def all_rows(results: sc18.Sc18Results) -> list[PaperRow]:
    """Every row that the command prints."""
    return sc18_rows.rows(results)


def as_published() -> dict[tuple[str, str], list[dict[str, float]]]:
    """Measures of one seed that say exactly what the paper says."""
    runs = {}
    for pair in sc18.PAIRS:
        for column in sc18.COLUMNS:
            slower = {"5 %": 0.9, "10 %": 0.8, "20 %": 0.7}.get(column, 1.0)
            wait = pair.waits.get(column, pair.waits[AWARE] * slower) * HOUR
            late = {AWARE: 1.09, V1: 1.09, V2: 1.04} if pair.name == "Sep Cab" else {AWARE: 1.09}
            minutes = {OBLIVIOUS: 10.0, AWARE: 480.0, "20 %": 30.0}.get(column, 60.0)
            measures = {
                "mean_wait": wait,
                "mean_wait_by_work": wait,
                "wait_65_256": minutes * 60,
                "utilization_while_waiting": 0.81 if column == AWARE else 0.9,
                "utilization": 0.8,
                "makespan": 1e6 * (late.get(column, 1.0) if pair.overloaded else 1.0),
                "mean_turnaround": TURNAROUND.get(column, 1.0),
                "turnaround_by_work": TURNAROUND.get(column, 1.0),
                "highest_aph_under_128": 1.9,
                "aph_over_least": 1.0,
                "widest": 256,
                "longest": 24 * HOUR,
                "nodes_each_hour": [9, 9] if pair.name == "Sep Cab" else [3, 5],
                **{f"wait {size}": (0, 0.0) for size in sc18.BINS},
                "wait 1": (87, 0.0),
                "wait 65-256": (13, 13 * minutes * 60),
                **{f"least {size}": (10, 10.0) for size in sc18.CLASSES},
                **aph(pair, column),
            }
            runs[pair.name, column] = [measures]
    return runs


def agrees(what: str, *changes: tuple[str, str, str, float]) -> bool:
    """Whether all claims of the row of that beginning agree, after changes to (pair, column, measure)."""
    runs = copy.deepcopy(as_published())
    for pair, column, key, value in changes:
        runs[pair, column][0][key] = value
    (row,) = (row for row in all_rows(sc18.Sc18Results(runs)) if row.what.startswith(what))
    return row.value is not False and row.side is not False


def test_the_paper_agrees_with_itself():
    rows = all_rows(sc18.Sc18Results(as_published()))
    odd = {row.what: row.verdict for row in rows if row.verdict not in ("agrees", "given")}
    assert odd == {
        "APH of recorded placements": "not measured: failed",
        "waits where the queue is ordered by user priority and usage": "not measured: failed",
    }
    assert len({row.what for row in rows}) == len(rows)
    assert sum(row.what.startswith("mean wait, ") for row in rows) == 4 * len(sc18.PAIRS)
    assert [pair.name for pair in sc18.PAIRS if pair.overloaded] == OVERLOADED
    assert all(row.what and row.paper and row.ours for row in rows)


def test_what_cannot_fail_is_given():
    """Fitted waits of the oblivious policy, what the months were made from, sums that stay, effects below the tolerance."""
    given = {row.what: row.given for row in all_rows(sc18.Sc18Results(as_published())) if row.given}
    fitted = {f"mean wait, {pair.name}, oblivious (h)" for pair in sc18.PAIRS}
    light = [pair.name for pair in sc18.PAIRS if not pair.overloaded]
    conserved = {f"{what}, {name}, aware (%)" for what in ("utilisation", "makespan") for name in light}
    made = {f"widest and longest job, {month} Cab" for month in ("Aug", "Sep", "Nov")}
    assert fitted | conserved | made <= set(given)
    assert set(given) - fitted - conserved - made == {
        "jobs under 18 nodes, Sep (%)",
        "nodes requested an hour, Sep",
        "order of the pairs by mean wait, oblivious",
        "highest APH of jobs under 128 nodes, aware",
        "mean wait / oblivious, Aug-2x Cab, V2",
        "mean wait / oblivious, Nov-2x Cab, V2",
    }


@pytest.mark.parametrize(
    ("pair", "column", "hours", "expected"),
    [
        # A light month: 0.1 h is more than a quarter of 0.15 h.
        ("Aug Cab", OBLIVIOUS, 0.249, True),
        ("Aug Cab", OBLIVIOUS, 0.251, False),
        ("Aug Cab", OBLIVIOUS, 0.051, True),
        ("Aug Cab", OBLIVIOUS, 0.049, False),
        # A heavy one: a quarter of 330 h.
        ("Sep Cab", AWARE, 412, True),
        ("Sep Cab", AWARE, 413, False),
        ("Sep Cab", AWARE, 248, True),
        ("Sep Cab", AWARE, 247, False),
    ],
)
def test_waits(pair, column, hours, expected):
    assert agrees(f"mean wait, {pair}, {column} ", (pair, column, "mean_wait", hours * HOUR)) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(1.07, False), (1.09, True), (1.15, True), (1.17, False)])
def test_ratios_of_waits(ratio, expected):
    """The paper's is 1.119: a third of what it is above 1."""
    change = ("Sep Cab", AWARE, "mean_wait", ratio * 295 * HOUR)
    assert agrees("mean wait / oblivious, Sep Cab, aware", change) == expected


@pytest.mark.parametrize(
    ("column", "minutes", "expected"),
    [
        (AWARE, 950, True),
        (AWARE, 970, False),
        # A wait hangs on the workload: less than the paper's is no merit.
        (AWARE, 239, False),
        (OBLIVIOUS, 4.9, False),
        (OBLIVIOUS, 19.9, True),
    ],
)
def test_waits_by_size(column, minutes, expected):
    change = ("Aug Cab", column, "wait_65_256", minutes * 60)
    assert agrees(f"wait of 65-256 nodes, Aug Cab, {column} ", change) == expected


@pytest.mark.parametrize(("added", "expected"), [(0.75, True), (0.93, True), (0.95, False), (0.55, False)])
def test_added_waits(added, expected):
    change = ("Aug Cab", AWARE, "mean_wait", (0.15 + added) * HOUR)
    assert agrees("wait added by isolation, Aug Cab ", change) == expected


@pytest.mark.parametrize(("change", "expected"), [(-10, True), (-7.1, True), (-6.9, False), (-13.1, False)])
def test_utilisation_while_jobs_wait(change, expected):
    key = "utilization_while_waiting"
    row = "utilisation while jobs wait, Sep Cab, aware"
    assert agrees(row, ("Sep Cab", AWARE, key, 0.9 * (1 + change / 100))) == expected


@pytest.mark.parametrize(
    ("column", "change", "expected"),
    [
        # 'up to 9': anything from 0 to 9, and 3 points beyond.
        (AWARE, 1, True),
        (AWARE, 11.9, True),
        (AWARE, 12.1, False),
        (AWARE, -0.1, False),
        # 'about 4': 3 points on either side.
        (V2, 1.1, True),
        (V2, 0.9, False),
        (V2, 7.1, False),
    ],
)
def test_makespan(column, change, expected):
    assert (
        agrees(f"makespan, Sep Cab, {column} ", ("Sep Cab", column, "makespan", 1e6 * (1 + change / 100)))
        == expected
    )


def test_hops():
    assert not agrees("highest APH", ("Nov Cab", AWARE, "highest_aph_under_128", 2.0))
    assert agrees("highest APH", ("Nov Cab", OBLIVIOUS, "highest_aph_under_128", 3.9))
    # The mean over the pairs: 8 x 0.1 is their sum of what is allowed.
    near = "APH over the least possible, 19 to 324 nodes, aware"
    assert agrees(near, ("Nov Cab", AWARE, "aph_over_least", 1.79))
    assert not agrees(near, ("Nov Cab", AWARE, "aph_over_least", 1.81))


@pytest.mark.parametrize(("change", "expected"), [(2.9, True), (3.1, False), (-3.1, False)])
def test_light_months_keep_their_makespan(change, expected):
    makespan = ("Nov Cab", AWARE, "makespan", 1e6 * (1 + change / 100))
    assert agrees("makespan, Nov Cab, aware", makespan) == expected


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("order of mean waits, Sep Cab", ("Sep Cab", V2, "mean_wait", 329 * HOUR)),
        ("mean wait at 0, 5, 10, 20 % speed-up, Sep Cab", ("Sep Cab", "20 %", "mean_wait", 999 * HOUR)),
        ("wait of 65-256 nodes, Nov Cab (h)", ("Nov Cab", AWARE, "wait 65-256", (13, 13 * 300.0))),
        ("the same, Nov Cab: 20 %", ("Nov Cab", "20 %", "wait 65-256", (13, 13 * 60 * 250.0))),
        ("wait + run at 20 % speed-up, Nov Cab", ("Nov Cab", "20 %", "mean_turnaround", 1.01)),
        ("wait + run at 5 % speed-up, Nov Cab", ("Nov Cab", "5 %", "mean_turnaround", 0.99)),
        (
            "APH over the least possible, 19 to 324 nodes, obl",
            ("Nov Cab", OBLIVIOUS, "aph 19-324", (10, 19.0)),
        ),
        ("mean APH, Nov Cab", ("Nov Cab", AWARE, "aph up to 18", (10, 90.0))),
        (
            "APH over the least possible above 324 nodes, Nov Cab",
            ("Nov Cab", AWARE, "aph over 324", (10, 9.0)),
        ),
        ("mean APH, Aug-2x, obl", ("Aug-2x Pinot", OBLIVIOUS, "aph up to 18", (10, 1.0))),
        ("jobs under 18 nodes, Sep", ("Sep Cab", OBLIVIOUS, "wait 1", (60, 0.0))),
        ("widest and longest job, Aug", ("Aug Cab", OBLIVIOUS, "widest", 257)),
        ("nodes requested an hour, Sep", ("Nov Cab", OBLIVIOUS, "nodes_each_hour", [10, 10])),
    ],
)
def test_directions_and_ranks_fail_on_the_other_side(what, change):
    """What agrees as published differs as soon as one measure lies on the other side."""
    assert agrees(what)
    assert not agrees(what, change)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((1.1, 1.05, 1.0, 0.9), 10), ((1.2, 1.1, 1.0, 0.9), 10), ((1.04, 0.96, 0.9, 0.8), 2.5)]
    + [((1.0, 0.9, 0.8, 0.7), 0), ((1.3, 1.2, 1.1, 0.9), 15), ((1.3, 1.2, 1.1, 1.05), float("inf"))],
)
def test_isolation_pays_from_where_wait_and_run_are_as_short(ratios, expected):
    found = sc18_waits.break_even(dict(zip(sc18_waits.SPEEDUPS, ratios)))
    assert found == pytest.approx(expected)


def test_several_seeds_are_averaged_and_their_range_is_said():
    runs = as_published()
    for column in sc18.COLUMNS:
        runs["Aug Cab", column] *= 3
    runs["Aug Cab", AWARE] = [
        {**runs["Aug Cab", AWARE][0], "mean_wait": hours * HOUR} for hours in (0.5, 1.0, 1.5)
    ]
    results = sc18.Sc18Results(runs)
    (row,) = (row for row in sc18.rows(results) if row.what == "mean wait, Aug Cab, aware (h)")
    assert (row.ours, row.verdict) == ("1.00 (0.50 to 1.50)", "agrees")
    assert sc18.mean_waits(results, sc18.PAIRS[0])[:2] == pytest.approx([0.15, 1.0])


def test_the_runs_of_the_study():
    planned = sc18.tasks(range(1, 6))
    assert len(planned) == len(sc18.PAIRS) * len(sc18.COLUMNS) * 5
    assert len({task for _, _, task in planned}) == len(planned)
    for pair, column, task in planned:
        assert (task.machine, task.workload, task.shape.nodes_x) == (
            pair.machine,
            pair.workload,
            pair.nodes_x,
        )
        assert (task.policy == "isolated") == (column != OBLIVIOUS)


@pytest.fixture
def one_light_pair(monkeypatch):
    monkeypatch.setattr(sc18, "PAIRS", [pair for pair in sc18.PAIRS if pair.name == "Nov Cab"])


def test_a_real_run_in_json(one_light_pair, capsys):
    cli(["paper", "sc18", "--seeds", "1", "--jobs", "1", "--json"], standalone_mode=False)
    out, said = capsys.readouterr()
    rows = json.loads(out)
    assert said == ""
    assert all({"what", "paper", "ours", "verdict", "why"} <= set(row) for row in rows)
    found = {row["what"]: row for row in rows}
    fitted = found["mean wait, Nov Cab, oblivious (h)"]
    assert (fitted["verdict"], fitted["value"]) == ("given", True)
    assert found["APH over the least possible, 19 to 324 nodes, aware"]["verdict"] == "agrees"


def test_the_figures_show_every_pair_with_the_papers_figures(tmp_path):
    """Each is written, and the bars of waits are ours: their heights are the means over the seeds."""
    results = sc18.Sc18Results(as_published())
    sc18_figures.write(tmp_path, results)
    assert {file.name for file in tmp_path.iterdir()} == set(sc18_figures.OWN)
    for axes, overloaded in zip(sc18_figures.waits(results).axes, (False, True), strict=True):
        pairs = [pair for pair in sc18.PAIRS if pair.overloaded == overloaded]
        assert [label.get_text() for label in axes.get_xticklabels()] == [pair.name for pair in pairs]
        for column, drawn in zip((OBLIVIOUS, AWARE, V1, V2), axes.containers[1::2], strict=True):
            heights = [patch.get_height() for patch in drawn.patches]
            assert heights == pytest.approx([pair.waits[column] for pair in pairs])
    (axes,) = sc18_figures.changes(results, "makespan", "Makespan", sc18.later_ends).axes
    diamonds = [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "D"]
    assert diamonds == [[9.0] * 4, [9.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]]


def test_whiskers_reach_from_the_least_to_the_most_of_the_seeds():
    """Three seeds of one cell: the bar is their mean, the whisker ends at the least and at the most."""
    runs = {key: of * 3 for key, of in as_published().items()}
    runs["Aug Cab", AWARE] = [
        {**runs["Aug Cab", AWARE][0], "mean_wait": hours * HOUR} for hours in (0.5, 1.0, 2.4)
    ]
    axes = sc18_figures.waits(sc18.Sc18Results(runs)).axes[0]
    aware = next(each for each in axes.containers if each.get_label() == AWARE and hasattr(each, "errorbar"))
    assert aware.patches[0].get_height() == pytest.approx(1.3)
    (whiskers,) = aware.errorbar.lines[2]
    assert whiskers.get_segments()[0][:, 1] == pytest.approx([0.5, 2.4])


def test_a_real_run_as_tables(one_light_pair, capsys, monkeypatch):
    runs = as_published()
    study = sc18.Sc18Results({key: value for key, value in runs.items() if key[0] == "Nov Cab"})
    monkeypatch.setattr(sc18, "study", lambda *_, **__: study)
    cli(["paper", "sc18", "--seeds", "1"], standalone_mode=False)
    out, _ = capsys.readouterr()
    assert all(column in out for column in (*sc18.COLUMNS, "verdict", "tolerance", "Nov Cab"))
    assert "agree in value" in out and "agree in direction" in out
