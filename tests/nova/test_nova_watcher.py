"""The strategy for OpenStack Watcher, executed by Watcher's own classes on a whole Nova."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest
from cloud_process import LEAVES, CloudProcess
from placements import COMPACT, STOCK, hops, tree

TREE = tree(LEAVES, leaves_in_pod=2)
EXECUTES = """
import json, sys
from topolane.nova.watcher_strategy import ServerGroupPlacement
from watcher.applier.actions.migration import Migrate
from watcher.common import utils
strategy = ServerGroupPlacement(utils.Struct())
strategy.input_parameters = utils.Struct(json.loads(sys.argv[1]))
actions = strategy.execute().actions
for action in actions:
    migrate = Migrate(utils.Struct())
    migrate.input_parameters = action["input_parameters"]
    migrate.validate_parameters()
print(json.dumps(actions))
"""


def test_an_audit_gets_the_migrations_of_the_plan(cloud: CloudProcess, tmp_path: Path) -> None:
    """As actions that Watcher's action `migrate` takes, in the order of the plan."""
    if importlib.util.find_spec("watcher") is None:
        pytest.skip("python-watcher is not installed")
    cloud.schedule_by(STOCK)
    servers = cloud.boot(8, cloud.group("solver"), hints=COMPACT)
    ended, output, errors = cloud.command("plan", "--json", directory=str(tmp_path))
    assert ended == 0, errors
    moves = json.loads(output)["migrations"]
    assert moves and hops(TREE, list(servers.values())) > 0
    ended, output, errors = cloud.python(EXECUTES, "{}", directory=str(tmp_path))
    assert ended == 0, errors
    actions = json.loads(output.splitlines()[-1])
    assert {action["action_type"] for action in actions} == {"migrate"}
    keys = ("resource_id", "source_node", "destination_node")
    assert [tuple(action["input_parameters"][key] for key in keys) for action in actions] == [
        (move["server"], move["source"], move["target"]) for move in moves
    ]
    ended, output, errors = cloud.python(EXECUTES, '{"most": 1}', directory=str(tmp_path))
    assert ended == 0 and len(json.loads(output.splitlines()[-1])) == 1


def test_the_strategy_is_an_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["watcher_strategies"] == {
        "topolane_server_groups": "topolane.nova.watcher_strategy:ServerGroupPlacement"
    }
