"""`topolane paper gang --xen`: what is counted is what the words say, and domains of a real Xen log all iterations."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import InputError
from topolane.cli import cli
from topolane.studies import gang_xen, xen_machine
from topolane.studies.cli import gang_xen as command
from topolane.studies.gang import Done, Job
from topolane.studies.gang_programs import Independent, Run
from topolane.studies.gang_xen import CREDIT, CREDIT2, GANG, InStep, Setting

TWO = Job("two", Run(Independent(0.1), iterations=2), 2)
EVEN = Done(TWO, [[0.1, 0.2], [0.1, 0.25]])
UNEVEN = Done(TWO, [[0.1, 0.2], [0.3, 0.5]])


def test_in_step_is_at_most_an_iteration_after_the_others() -> None:
    """Of the four iterations of two threads, those that end 0.2 and 0.3 s after the other's are out of step: half. The
    mean of two domains, of which one is whole, is three quarters, give or take 12.706 standard errors of 0.25."""
    seen = InStep(Setting(2, 2, CREDIT), [EVEN, UNEVEN])
    assert seen.shares == [1.0, 0.5]
    assert seen.mean.mean == 0.75
    assert seen.mean.half == pytest.approx(12.706 * 0.25, rel=1e-4)
    assert seen.worst == pytest.approx(0.3)


def test_a_log_of_a_console_is_read_by_thread() -> None:
    """Lines of a console end with a carriage return. Times count from the first thread's beginning; what else a domain
    says is no iteration."""
    said = "ready\r\nlog 1 7.5 8.0\r\nlog 0 7.0 7.6\r\nlog 0 7.6 8.5\r\nlog 1 8.0 9.0\r\ndone\r\n"
    done = gang_xen.done_by(said, TWO)
    assert done.ends == [pytest.approx([0.6, 1.5]), pytest.approx([1.0, 2.0])]
    assert done.finished == pytest.approx(2.0)


def test_a_gang_below_95_percent_has_failed() -> None:
    """Each setting under gang has a verdict, next to what credit kept in step."""
    found = [InStep(Setting(2, 2, CREDIT), [UNEVEN]), InStep(Setting(2, 2, GANG), [UNEVEN])]
    (row,) = gang_xen.expectations(found)
    assert not row.met
    assert row.seen == "50.0% (credit 50.0%)"
    (row,) = gang_xen.expectations([found[0], InStep(Setting(2, 2, GANG), [EVEN])])
    assert row.met


def test_the_simulated_hypervisor_does_the_same_jobs() -> None:
    """Every seed has every domain with all iterations of all threads; credit2 is not simulated."""
    model = gang_xen.simulated(Setting(4, 3, GANG), 5)
    assert model is not None
    assert [len(ends) for done in model.done for ends in done.ends] == [5] * (4 * len(model.done))
    assert gang_xen.simulated(Setting(4, 3, CREDIT2), 5) is None
    shown = command.table([InStep(Setting(4, 3, CREDIT2), [EVEN])], [None])
    assert shown.lines[0][-2:] == (None, None)


def test_without_xen_a_sentence_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--xen goes with no other cores, and where there is no Xen the command ends with 2 and names what it lacks."""
    assert CliRunner().invoke(cli, ["paper", "gang", "--xen", "--real"]).exit_code == 2
    monkeypatch.setenv("TOPOLANE_XEN", str(tmp_path))
    with pytest.raises(InputError, match="^not measured on Xen: "):
        CliRunner().invoke(cli, ["paper", "gang", "--xen"], catch_exceptions=False)


def test_domains_of_a_real_xen_log_all_iterations(tmp_path: Path) -> None:
    """Two domains of two virtual processors run to their ends under every scheduler of Xen, pinned thread by thread,
    and move from pool to pool; a domain alone is in step."""
    if reason := xen_machine.missing():
        pytest.skip(reason)
    found = gang_xen.measure(tmp_path, 2, (2,), 3)
    assert [one.setting.scheduler for one in found] == list(gang_xen.SCHEDULERS)
    for one in found:
        assert [[len(ends) for ends in done.ends] for done in one.done] == [[3, 3], [3, 3]]
    assert found[0].mean.mean == 1.0
