"""Measures a month on 5,000 nodes in NVL72 racks under every policy, and single decisions on the same machine
nearly full.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from figures import Setting, figure
from measure import BenchError, Row, TooLongError, cost

ROOT = Path(__file__).resolve().parent.parent
FIGURE = "gpu-month"
RUN = ("--machine", "nvl72-5000", "--workload", "gpu-month")
MONTH_LIMIT = 5.0
"""The target for a month, in CPU seconds."""
STOPPED_AFTER = 30
"""A month is stopped after this many CPU seconds."""
DECISION_LIMITS = {"median_us": 20.0, "p99_us": 1_000.0}
NOT_PLACING = ("recorded",)
"""Policies that need more than a workload."""


@figure
def gpu_month(setting: Setting) -> list[Row]:
    """The month and the decisions under every policy."""
    listed = json.loads(setting.topolane("policies", "--json").output)
    names = [each["name"] for each in listed if each["kind"] == "policy"]
    policies = [name for name in names if name not in NOT_PLACING]
    return [*(month(setting, policy) for policy in policies), *decisions(setting, policies)]


def month(setting: Setting, policy: str) -> Row:
    """The month under one policy; a row without values if it cannot be run."""
    what = f"a month on nvl72-5000, easy, {policy}"
    try:
        runs = setting.simulations(*RUN, "--policy", policy, most=STOPPED_AFTER)
    except TooLongError:
        return Row(FIGURE, f"{what}, stopped there", "s CPU", (STOPPED_AFTER,), MONTH_LIMIT)
    except BenchError as error:
        return Row(FIGURE, what, "s CPU", (), MONTH_LIMIT, note=str(error).splitlines()[-1])
    return Row(FIGURE, what, "s CPU", tuple(run.net for run in runs), MONTH_LIMIT)


def decisions(setting: Setting, policies: list[str]) -> list[Row]:
    """Single decisions on nvl72-5000 with 95 % of its nodes in use."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return [Row(FIGURE, "one placement", "us", (), note="no cargo")]
    command = [cargo, "bench", "-q", "-p", "topolane-placement", "--bench", "domains", "--"]
    cost([*command, "first-fit"], directory=ROOT)  # builds the program
    rows = []
    for policy in policies:
        runs = [json.loads(cost([*command, policy], directory=ROOT).output) for _ in range(setting.repeats)]
        for kind, seen in kinds(runs):
            what = f"{policy}, nvl72-5000 at {runs[0]['full']:.0%}, {kind} (of {seen[0]['count']:,.0f})"
            for statistic, limit in DECISION_LIMITS.items():
                values = tuple(each[statistic] for each in seen)
                rows.append(Row(FIGURE, f"{what}: {statistic.removesuffix('_us')}", "us", values, limit))
    return rows


def kinds(runs: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, float]]]]:
    """The kinds of decisions that occurred, each with its measurements in every run."""
    found = [(kind, [run[kind] for run in runs]) for kind in ("placed", "refused")]
    if "parts" in runs[0]:
        found += [
            (f"parts of nodes, {kind}", [run["parts"][kind] for run in runs])
            for kind in ("placed", "refused")
        ]
    return [(kind, seen) for kind, seen in found if seen[0]["count"]]
