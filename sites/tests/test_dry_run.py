"""The mover that moves nothing behaves as the others do, failures included."""

from __future__ import annotations

from pathlib import Path

import pytest
from topolane._engine import InputError
from topolane_sites.model import Guest, Host
from topolane_sites.movers import GuestLost, MoveFailed, mover


def _hosts(folder: Path | None = None) -> tuple[Host, Host]:
    made = []
    for name in ("a", "b"):
        if folder:
            (folder / name).mkdir()
        made.append(Host(name, f"site-{name}", 2, 2**30, address=str(folder / name) if folder else ""))
    return made[0], made[1]


GUEST = Guest("g1", "c", 1, 2**28, "a")


def test_a_moved_guest_is_at_its_target_alone_and_progress_rises_to_one() -> None:
    here, there = _hosts()
    dry = mover("dry-run")
    assert dry.where(GUEST, (here, there)) == ("a",)
    seen: list[float] = []
    measured = dry.move(GUEST, here, there, seen.append)
    assert measured["bytes"] == 2**28
    assert seen == sorted(seen) and seen[-1] == 1.0
    assert dry.where(GUEST, (here, there)) == ("b",)


def test_guests_in_folders_outlive_the_mover(tmp_path: Path) -> None:
    here, there = _hosts(tmp_path)
    (tmp_path / "a" / "g1").write_text("running")
    mover("dry-run").move(GUEST, here, there, lambda _: None)
    assert mover("dry-run").where(GUEST, (here, there)) == ("b",)


def test_a_move_set_to_fail_leaves_the_guest_at_its_source(tmp_path: Path) -> None:
    here, there = _hosts(tmp_path)
    (tmp_path / "a" / "g1").write_text("running")
    (tmp_path / "b" / ".fail").write_text("no room")
    with pytest.raises(MoveFailed, match="no room"):
        mover("dry-run").move(GUEST, here, there, lambda _: None)
    assert mover("dry-run").where(GUEST, (here, there)) == ("a",)


def test_a_guest_set_to_be_lost_is_nowhere(tmp_path: Path) -> None:
    here, there = _hosts(tmp_path)
    (tmp_path / "a" / "g1").write_text("running")
    (tmp_path / "b" / ".lost").write_text("power cut")
    with pytest.raises(GuestLost, match="power cut"):
        mover("dry-run").move(GUEST, here, there, lambda _: None)
    assert mover("dry-run").where(GUEST, (here, there)) == ()
    with pytest.raises(GuestLost):
        mover("dry-run").settle(GUEST, here, there)


@pytest.mark.parametrize(
    ("at_source", "at_target", "host"),
    [
        ("running", "incoming", "a"),
        ("running", "running", "a"),
        (None, "running", "b"),
        ("running", None, "a"),
    ],
)
def test_settling_leaves_one_running_copy(
    tmp_path: Path, at_source: str | None, at_target: str | None, host: str
) -> None:
    here, there = _hosts(tmp_path)
    for name, state in (("a", at_source), ("b", at_target)):
        if state:
            (tmp_path / name / "g1").write_text(state)
    assert mover("dry-run").settle(GUEST, here, there) == host
    assert mover("dry-run").where(GUEST, (here, there)) == (host,)


def test_settling_in_memory_after_nothing_happened_keeps_the_source() -> None:
    here, there = _hosts()
    assert mover("dry-run").settle(GUEST, here, there) == "a"


def test_a_driver_there_is_none_of_is_named() -> None:
    with pytest.raises(InputError, match="'teleport' is not one of: dry-run"):
        mover("teleport")
