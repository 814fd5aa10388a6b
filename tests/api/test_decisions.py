"""The engine decides as it did when `benches/decisions/expected.json` was written.

Rule: whatever is re-arranged or renamed, every run gives the same jobs the same nodes, in the same order, at the
same times to the last bit, and every single decision gets the same answer. Here for the quick runs, which are those
of the embedded months and of drawn requests; `python benches/decisions.py --check --logs DIR` compares all.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

import decision_names
import decisions
from topolane import _engine


def test_quick_runs_decide_as_expected():
    """No quick run differs, none is missing on either side, and none is skipped."""
    every = set(decisions.matrix())
    found = {key: decisions.hashed(call) for key, (_, call) in decisions.matrix(quick=True).items()}
    assert len(found) > 500 and decisions.differences(found, every) == []


def test_every_policy_and_queue_is_held_to_its_decisions():
    """What is registered is hashed: a new policy or queue adds its hashes with `run.py decisions --quick --write`."""
    names = {name for name, _ in decision_names.POLICIES.values()} | {decision_names.RECORDED}
    assert names == {name for name, _ in _engine.policies()}
    assert set(decision_names.SITE_POLICIES.values()) == {name for name, _ in _engine.site_policies()}
    queues = {key.split("/")[1] for key in decisions.matrix(quick=True)}
    assert queues >= {name for name, _ in _engine.queues()}
