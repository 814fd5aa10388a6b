"""What the view of Slurm holds, and what its readers cost with many jobs. No Slurm runs here."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rich.live
from plugin_files import waiting, write_jobs
from room_records import TREE, look_at, runs, waits
from topolane.cli import slurm_status
from topolane.cluster.hypothetical import Hypothetical
from topolane.cluster.links import Links
from topolane.cluster.view import Running, View
from topolane.serve import slurm as served
from topolane.slurm import plugin_state
from topolane.slurm.explain import explain
from topolane.slurm.inspection import InspectionSettings, SlurmInspection
from topolane.slurm.links_out import LinksOut
from topolane.slurm.metrics import metrics
from topolane.slurm.records import Partition
from topolane.slurm.status import status
from topolane.slurm.view import view


def test_jobs_of_the_same_partitions_share_the_list_of_their_nodes(tmp_path: Path) -> None:
    """Thousands of tasks of an array may name two partitions of thousands of nodes each."""
    jobs = [waits(number, 1, partitions=("p", "q")) for number in (1, 2)]
    look = look_at(tmp_path, *jobs)
    assert look.snapshot is not None
    parts = {
        name: Partition(name, nodes, True, None) for name, nodes in (("p", "node[1-4]"), ("q", "node[3-8]"))
    }
    look = dataclasses.replace(look, snapshot=dataclasses.replace(look.snapshot, partitions=parts))
    one, other = view(look).waiting
    assert one.eligible == tuple(range(8)) and one.eligible is other.eligible


def test_a_refused_job_is_shown_with_the_nodes_that_the_plugin_looked_for(tmp_path: Path) -> None:
    """Of `-N 4-8` the plugin looks for 8. Others are shown with the fewest nodes that they take."""
    look = look_at(tmp_path, waits(1, 4, reason="Resources", most_nodes=8), waits(2, 4, reason="Resources"))
    write_jobs(tmp_path, f"machine machine.toml {TREE.nodes}", waiting(1, "isolated", "not-now", 8, "0-2"))
    found = status(dataclasses.replace(look, state=plugin_state.read(tmp_path)))
    shown = io.StringIO()
    rich.console.Console(file=shown, width=200).print(slurm_status._shown(found))
    rows = [line.split() for line in shown.getvalue().splitlines()]
    assert {row[0]: row[2] for row in rows if row[:1] in (["1"], ["2"])} == {"1": "8", "2": "4"}
    assert [row.size for row in found.waiting] == [8, 4]


def test_names_of_jobs_are_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` shows them as they are: one user's name neither ends it nor looks like something else."""
    look = look_at(tmp_path, runs(1, "node[1-2]", 1, name="[/x]"), runs(2, "node3", 1, name="[red]job[/red]"))
    shown = Terminal()

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slurm_status, "_look", lambda *_: status(look))
    monkeypatch.setattr(slurm_status.time, "sleep", stop)
    monkeypatch.setattr("sys.stdout", shown)
    for name, value in {"TERM": "xterm", "COLUMNS": "200", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(KeyboardInterrupt):
        slurm_status._live(InspectionSettings(), None, 1.0)
    assert "[/x]" in shown.getvalue() and "[red]job[/red]" in shown.getvalue()


def test_metrics_ask_only_isolated_jobs_whom_they_may_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On common links each job may meet all others: lists of them would grow with the square of the jobs."""
    asked: list[str] = []
    meant = Links.of

    def of(links: Links, job: Running) -> list[tuple[str, list[str]]]:
        asked.append(job.name)
        return meant(links, job)

    monkeypatch.setattr(Links, "of", of)
    crossing = [runs(number, f"node[{number},{number + 12}]", 1) for number in range(1, 7)]
    samples = {one.name: one.samples for one in metrics(look_at(tmp_path, *crossing, policy="first-fit"))}
    assert samples["topolane_slurm_links_shared"][0].value > 0 and not asked
    assert {one.labels["state"]: one.value for one in samples["topolane_slurm_nodes"]}["busy"] == 12
    list(metrics(look_at(tmp_path, *crossing, policy="isolated")))
    assert len(asked) == 6


def test_jobs_are_named_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Not in that of their starts, in which the table of running jobs has them."""
    crossing = [runs(number, f"node[{number},{number + 12}]", number) for number in range(1, 5)]
    look = look_at(tmp_path, *crossing)
    assert [job.name for job in view(look).running] == ["4", "3", "2", "1"]
    assert "On those of pod0 it may meet jobs 2, 3 and 4." in explain(look, "1").sentences
    found = status(look).sharing
    assert found is not None and found.isolated_sharing == ["1", "2", "3", "4"]


class Terminal(io.StringIO):
    """What is printed on a terminal."""

    def isatty(self) -> bool:
        return True


class Read(tuple[int, ...]):
    """Numbers that count how often someone goes through them."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        type(self).times += 1
        return super().__iter__()

    def __contains__(self, item: Any) -> bool:
        return item in list(self)


@pytest.mark.parametrize("counts_slots", [False, True])
def test_a_question_goes_through_jobs_and_links_once(counts_slots: bool) -> None:
    """However many jobs run: explanations ask once for each job that could end."""
    jobs = tuple(Running(node, str(node), "", "", (node,), 0.0, None) for node in range(TREE.nodes))
    read = []
    for some in (jobs[:1], jobs):
        Read.times = 0
        seen = View(0.0, some, (), links_out=Read((0, 1)))
        Hypothetical.of(TREE, seen, "first-fit", counts_slots=counts_slots, gone=Read((2, 3)))
        read.append(Read.times)
    assert read[0] == read[1] > 0


def test_the_page_does_not_read_links_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin may have another machine after a restart of slurmctld. Its numbers of links mean nothing on the page then, which says
    so."""
    now = [look_of(tmp_path, 1)]
    monkeypatch.setattr(served, "inspect", lambda _: now[0])
    page = served.SlurmSource(InspectionSettings(), None, None, 1.0)
    before = page.now()
    assert before.links_out == (3,) and not before.problems
    now[0] = dataclasses.replace(look_of(tmp_path, 2), out=LinksOut(frozenset({10**6})))
    after = page.now()
    assert after.links_out == () and [job.name for job in after.running] == ["1"]
    assert after.problems == ("The plugin has another machine than when the page started: start it again.",)


def look_of(state: Path, machine_sum: int) -> SlurmInspection:
    """A job, and a link that is out of service on the machine with this checksum."""
    look = look_at(state, runs(1, "node[1-2]", 1))
    write_jobs(state, f"machine machine.toml {TREE.nodes}", f"machine-sum {machine_sum:016x}")
    return dataclasses.replace(look, state=plugin_state.read(state), out=LinksOut(frozenset({3})))
