"""The comparison of the rules on sites whose processors differ."""

from __future__ import annotations

import pytest
from topolane_studies import sites_processors
from topolane_studies.sites import SitesProgram
from topolane_studies.sites_cloud import KnownProgram
from topolane_studies.sites_processors import (
    LAYOUTS,
    POLICIES,
    MixLine,
    ProcessorsOutcome,
    ProcessorsScenario,
    ProgramKind,
)

COMPUTES = ProgramKind(
    KnownProgram(SitesProgram("ep", 26), 1.0, 100.0, 0.0, 0.0, 0.0, 0.0), (1.0, 1 / 1.5, 0.5), 0.0
)
WAITS = ProgramKind(
    KnownProgram(SitesProgram("cg", 26), 1.0, 100.0, 500.0, 1e6, 500.0, 1e4), (1.0, 1.0, 1.0), 2.5
)


def played(who: str, *kinds: ProgramKind, factor: float = 2.0, layout: str = LAYOUTS[1]) -> ProcessorsOutcome:
    """Programs of 26 ranks, of which four fill both sites."""
    return sites_processors.play(ProcessorsScenario(who, "mix", layout, factor, 1, kinds, 16))


def test_computing_is_done_at_the_speed_of_the_slowest_host() -> None:
    """Programs that only compute, each on hosts of one speed: half of the hosts work at 2, half at 1. Less than 1.5 in
    all, since hosts stand idle when a program ends and the next has not begun, and more than if all ran at 1."""
    assert COMPUTES.compute == 1.0 and WAITS.compute == 0.0
    assert played("ours", COMPUTES, factor=1.0).throughput == pytest.approx(1.0)
    for who in ("processors alone", "ours"):
        assert 1.3 < played(who, COMPUTES).throughput <= 1.5 + 1e-9


def test_a_program_that_waits_gains_nothing_from_fast_hosts() -> None:
    """Kept on one site it runs at 1, under the rules that see its traffic."""
    for who in ("traffic alone", "paper's rule", "ours"):
        assert played(who, WAITS).throughput == pytest.approx(1.0, abs=0.1)


def test_a_row_in_which_another_rule_is_better_is_missed() -> None:
    """By more than one in a hundred."""
    for ours, missed in ((0.98, True), (0.995, False), (1.2, False)):
        line = MixLine("m", "l", 1.0, {**dict.fromkeys(POLICIES, 1.0), "ours": ours})
        assert line.missed is missed
