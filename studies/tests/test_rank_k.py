"""Cores per node: the paper's tables, and what the Python interface refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import InputError, Machine, Profile, State, Traffic, rank_k
from topolane.cli import cli
from topolane_studies import PaperRow, rank_k_figures
from topolane_studies import rank_k as paper
from topolane_studies import rank_k_choices as choices
from topolane_studies.rank_k_tables import TABLES, RankKTable


@pytest.fixture(scope="module")
def study() -> paper.RankKStudy:
    return paper.study()


def test_tables_are_whole_and_shapes_say_the_processes() -> None:
    assert [len(table.rows) for table in TABLES] == [16, 8, 8]
    assert [table.sizes() for table in TABLES] == [[4, 8, 16, 32, 64], [4, 8, 16], [4, 8, 16]]
    assert all(row.total >= row.collective for table in TABLES for row in table.rows)


def test_choices_cost_less_than_those_of_any_simple_rule(study: paper.RankKStudy) -> None:
    """Measured seconds of the chosen rows are below those of every fixed k and of one switch, which know memory too."""
    (_, _, _, ours), *rivals = choices.compared(study)
    assert len(rivals) == 5 and all(ours < theirs for *_, theirs in rivals)


def test_chosen_rows_are_the_best(study: paper.RankKStudy) -> None:
    assert all(chosen == best for chosen, best in choices.choices(study))


def test_a_rule_without_a_model_is_printed_next_to_ours(study: paper.RankKStudy) -> None:
    """All nodes of one switch are the best choice 9 times of 11, 5 times of the 6 held out."""
    right = {name: (right, held_out) for name, right, held_out, _ in choices.compared(study)}
    assert right["ours"] == (11, 6) and right["all nodes of one switch"] == (9, 5)
    assert all("one switch" in row.why for row in choices.rows(study) if "best nodes" in row.what)


def test_the_choice_is_no_accident() -> None:
    """Without penalties, or with copies for nothing, choices go wrong: both parts of the model bear
    on them."""
    right = {name: right for name, right, _ in choices.sensitivity()}
    assert right["as calibrated"] == 11
    assert right["no penalty at interfaces"] < 11
    assert right["copies without cost"] < 11


def cells(study: paper.RankKStudy) -> list[tuple[RankKTable, paper.Predicted, list[PaperRow]]]:
    return [
        (table, p, paper.cells(table, p)) for table, predicted in study.predicted.items() for p in predicted
    ]


def test_what_is_refused_agrees_in_nothing_and_counts(study: paper.RankKStudy) -> None:
    """The rows that exhausted memory are refused by memory. Their figures have failed, and their pairs are in no order."""
    refused = {(table.name, p.row.shape): p for table, p, _ in cells(study) if p.refusal is not None}
    assert {name: p.refusal for name, p in refused.items()} == {
        ("D", "1x4"): "memory",
        ("D", "1x8"): "memory",
    }
    for _, p, of in cells(study):
        if p.refusal:
            assert all((row.given, row.value, row.measured) == ("", False, False) for row in of)
            assert all("refused: " in row.why for row in of)
    (total,) = (
        row
        for row in choices.orders(study)
        if row.what == "InfiniBand QDR D: order of the total times of each P"
    )
    assert total.side is False and total.why.startswith("3 of 7 pairs")


def test_what_gave_a_parameter_is_given(study: paper.RankKStudy) -> None:
    """Three figures of 4x1 of class C, two of 1x4 and of 16x1; of class D not the collective time of 4x1."""
    given = [row.what for _, _, of in cells(study) for row in of if row.given]
    assert len(given) == 3 + 2 + 2 + 3 + 2 + 2
    assert "InfiniBand QDR D, 4x1: collective (s)" not in given
    assert sum(bool(row.given) for row in choices.rows(study)) == 5


def test_calibrated_rows_come_out_as_measured(study: paper.RankKStudy) -> None:
    """Each parameter was solved from a figure: that figure must come back within 2 % (latencies and
    the small collectives are not in the solution)."""
    figures = {
        ("Gigabit Ethernet", "C"): ["4x1", "1x4", "16x1"],
        ("InfiniBand QDR", "C"): ["4x1", "1x4"],
    }
    for table, p, _ in cells(study):
        if p.row.shape in figures.get((table.cluster, table.name), []):
            assert p.collective == pytest.approx(p.row.collective, rel=0.02)


def test_processes_wait_for_the_slowest(study: paper.RankKStudy) -> None:
    """The point-to-point time of 4x1 gives the imbalance and comes back; with equal computation more processes wait
    longer, for the slowest of more is slower; one process waits for no other."""
    for _, p, _ in cells(study):
        if p.row.shape == "4x1":
            assert p.point_to_point == pytest.approx(p.row.point_to_point, rel=0.02)
    slowest = [paper.slowest_of(processes) for processes in (1, 2, 4, 8, 16, 32, 64)]
    assert slowest[0] == 0 and slowest == sorted(slowest) and len(set(slowest)) == 7
    # The mean of the largest of four draws of a standard normal law is 1.029.
    assert paper.slowest_of(4) == pytest.approx(1.029, rel=0.03)


def test_rows_of_one_size_are_in_the_measured_order(study: paper.RankKStudy) -> None:
    """Totals and collective times of class C stand in the measured order within every P, in nine pairs of ten."""
    orders = {row.what: row.side for row in choices.orders(study)}
    assert len(orders) == 9
    assert all(side for what, side in orders.items() if "point-to-point" not in what and " C:" in what)


def test_verdicts_follow_the_tolerance(study: paper.RankKStudy) -> None:
    """A quarter of the paper's seconds. A total that is farther off comes with what it is if it computes as measured."""
    for _, p, (total, *_) in cells(study):
        if p.refusal is None:
            near = abs(p.total - p.row.total) <= 0.25 * p.row.total
            assert total.value == near and bool(total.why) != near


MACHINE = 'name = "m"\n[node]\ncores-per-socket = 2\n[[site]]\nname = "s"\nchildren = [4]\n'


def machine() -> Machine:
    return Machine.parse(MACHINE, "m.toml", "toml")


def test_every_k_up_to_the_cores_or_the_processes() -> None:
    fabric = machine()
    ranks = rank_k(State(fabric), fabric.routing("adaptive"), "first-fit", Profile(6, "alltoall"))
    assert [rank.k for rank in ranks] == [1, 2, 3, 4]
    assert ranks[0].refusal == "never"
    assert ranks[1].decision is not None and ranks[1].decision.nodes == [0, 1, 2]
    assert [rank.chosen for rank in ranks].count(True) == 1


def test_what_is_refused() -> None:
    fabric = machine()
    state, routing, program = State(fabric), fabric.routing("d-mod-k"), Profile(4, "alltoall")
    with pytest.raises(InputError, match="neither auto, fixed:k nor a number from 1"):
        rank_k(state, routing, "first-fit", program, cores="fixed:0")
    with pytest.raises(InputError, match="unknown model .magic.; there are"):
        rank_k(state, routing, "first-fit", program, model="magic")
    with pytest.raises(InputError, match="of another machine"):
        rank_k(state, machine().routing("d-mod-k"), "first-fit", program)
    with pytest.raises(InputError, match="at least 1 process"):
        Profile(0, "alltoall")
    with pytest.raises(InputError, match="core_seconds must be a number from 0, not NaN"):
        Profile(4, "alltoall", core_seconds=float("nan"))
    with pytest.raises(InputError, match="has 2 ranks, but the program 4 processes"):
        Profile(4, Traffic.of(2, [0], [1], [1.0]))


def test_a_process_gets_less_the_more_of_its_node_send(study: paper.RankKStudy) -> None:
    """The paper's micro-benchmarks: bandwidth of a pair and in MPI_Alltoall falls with the processes of a node, and grows
    with the message; one pair alone nears the calibrated message alone."""
    sent, exchanged = rank_k_figures.pairs(study), rank_k_figures.alltoall(study)
    for points in (sent, exchanged):
        for (cluster, size), of in grouped(points, lambda point: (point.cluster, point.bytes)).items():
            rates = [point.bandwidth for point in of]
            assert rates == sorted(rates, reverse=True) and rates[0] > rates[-1] > 0, (cluster, size)
        for of in grouped(points, lambda point: (point.cluster, point.processes)).values():
            by_size = sorted(of, key=lambda point: point.bytes)
            assert [point.bandwidth for point in by_size] == sorted(point.bandwidth for point in by_size)
    for cluster, node in study.nodes.items():
        alone = max(point.bandwidth for point in sent if point.cluster == cluster)
        assert 0.95 * node.flow < alone <= node.flow


def grouped(points, of):
    """Points by what `of` says of them."""
    found = {}
    for point in points:
        found.setdefault(of(point), []).append(point)
    return found


def test_the_figures_and_their_points_are_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["paper", "rank-k", "--out", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == set(rank_k_figures.OWN)
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == 1 + 2 * 8 * len(rank_k_figures.SIZES)
