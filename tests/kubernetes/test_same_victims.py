"""`topolane k8s plan` and the preemption of topolane-scheduler name the same victims.

`victim_cases.json` has states and their victims. native/kubernetes/plugin/victims_test.go asks the scheduler for the same ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_k8s_room_files import budget, group, look_at, node, pod, wide
from topolane.kubernetes.budgets import Budget
from topolane.kubernetes.machine import of_labels
from topolane.kubernetes.room_plan import make_plan

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "victim_cases.json").read_text())
KEYS = ("topo/rack", "kubernetes.io/hostname")
NODES = 16


def victims(case: dict[str, Any]) -> list[str]:
    """What the plan evicts."""
    nodes, pods = [node(number) for number in range(NODES)], []
    for unit in case["units"]:
        name, hours, policy = unit["name"], unit["seconds"] / 3600, unit["policy"]
        given = {"gpus": unit["gpus"], "priority": unit["priority"], "labels": {"app": unit["app"]}}
        if policy:
            placement = {"policy": policy, "link_use": "isolated" if policy == "isolated" else "shared"}
            pods += group(name, unit["nodes"], hours, placement=placement, **given)
        else:
            pods.append(pod(name, unit["nodes"][0], hours, **given))
    budgets = [Budget.of(budget("b", each["allowed"], {"app": each["app"]})) for each in case["budgets"]]
    look = look_at([*pods, *wide(**case["waits"])], nodes, of_labels(KEYS, nodes))
    plan = make_plan(look, budgets, "default/wide")
    return sorted(each.name.partition("/")[2] for each in plan.evicted)


@pytest.mark.parametrize("case", CASES)
def test_a_plan_names_the_victims_of_the_case(case: dict[str, Any]) -> None:
    """The same units, budgets and group that waits have the victims that the scheduler has for them."""
    assert victims(case) == case["victims"]
