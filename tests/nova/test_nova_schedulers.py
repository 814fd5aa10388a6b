"""Several schedulers at once: what one plans, the others keep off."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cloud_process import missing

pytest.importorskip("nova", reason="the extra nova-test is not installed")

from oslo_db import exception
from topolane.nova import shared_claims
from topolane.nova.shared_claims import Claim, Given, SharedClaims

ROOT = Path(__file__).resolve().parents[2]
CLAIM = Claim("group", "server1", ["host1", "host2"], [Given("server1", "host1", None)], ["host2"], True)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Rows of the database by request, with its version."""
    rows: dict[str, Any] = {"version": 0, "claims": {}}

    def write(context: object, request: str, claim: Claim | None, version: int | None) -> bool:
        if version is not None and version != rows["version"]:
            return False
        rows["version"] += version is not None
        rows["claims"][request] = claim
        return True

    monkeypatch.setattr(shared_claims, "_make_tables", lambda context: None)
    monkeypatch.setattr(shared_claims, "_rows", lambda context: (rows["version"], []))
    monkeypatch.setattr(shared_claims, "_write", write)
    return rows


def test_of_two_decisions_by_the_same_version_one_is_made_again(table: dict[str, Any]) -> None:
    one, other = SharedClaims(True), SharedClaims(True)
    seen = one.read(None), other.read(None)
    assert seen[0] is not None and seen[1] is not None
    assert one.write(None, one.new_request(), CLAIM, seen[0].version)
    assert not other.write(None, other.new_request(), CLAIM, seen[1].version)


def test_without_a_database_the_scheduler_goes_on_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, table: dict[str, Any]
) -> None:
    def gone(context: object) -> None:
        raise exception.DBConnectionError()

    monkeypatch.setattr(shared_claims, "_rows", gone)
    monkeypatch.setattr(shared_claims, "RESTS_SECONDS", 0.0)
    claims = SharedClaims(True)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            assert claims.read(None) is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "Claims are not shared with other schedulers" in caplog.text
    monkeypatch.setattr(shared_claims, "_rows", lambda context: (0, []))
    with caplog.at_level(logging.INFO):
        assert claims.read(None) is not None
    assert "Claims are shared with other schedulers again" in caplog.text


@pytest.mark.components
def test_groups_requested_of_four_schedulers_share_nothing_and_none_is_refused() -> None:
    """Also where one of them is killed. Without shared claims, no round of eight went well."""
    if absent := missing():
        pytest.skip(f"the extra nova-test is not installed: {', '.join(absent)} cannot be imported")
    command = [sys.executable, str(ROOT / "benches/nova/rounds.py"), "--rounds", "8", "--schedulers", "4"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shared links in 0 rounds, 0 groups refused" in done.stdout
