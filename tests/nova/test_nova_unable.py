"""While Topolane cannot answer, an isolated server is placed nowhere, and all others as by stock Nova."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, ours, tree, write

TREE = tree([HOSTS[start : start + 4] for start in range(0, 72, 4)], leaves_in_pod=3)
NO_TOPOLOGY = "isolated servers need to know the network"


@pytest.fixture
def machine(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.getbasetemp() / "for-unable.conf"
    write(file, TREE)
    return file


def test_without_a_network_isolated_servers_are_refused(cloud: CloudProcess, machine: Path) -> None:
    """No machine file, no aggregates: stock Nova places a compact group; an isolated one is refused, and the log says why."""
    cloud.schedule_by(ours())
    try:
        left = cloud.boot(2, cloud.group("compact"), hints=COMPACT)
        cloud.delete(list(left))
        before = len(cloud.log(NO_TOPOLOGY))
        with pytest.raises(Refused, match="No valid host"):
            cloud.boot(2, cloud.group("isolated"), hints=ISOLATED)
        assert len(cloud.log(NO_TOPOLOGY)) > before
    finally:
        cloud.schedule_by(ours(machine_file=str(machine)))


def test_a_filter_that_fails_passes_no_host_for_isolated_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the filter fails for every request: hosts pass for a compact group, none for an isolated one."""
    from nova import objects
    from nova_specs import host_state, request_spec
    from topolane.nova import filter as module
    from topolane.nova.plugin import Plugin

    objects.register_all()

    class Failing:
        options = type("Options", (), {"default_placement": "none"})()
        refusals: Any = type("Counts", (), {"add": lambda self, kind: counted.append(kind)})()
        isolates = Plugin.isolates

        def request(self, spec: Any) -> Any:
            raise RuntimeError("the engine has failed")

    counted: list[str] = []
    monkeypatch.setattr(module, "plugin", Failing)
    asked = module.TopolaneFilter()
    hosts = [host_state({"host": name, "nodename": name, "instances": []}) for name in HOSTS[:3]]
    flavor = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0, "extra_specs": {}}
    for hints, passed in ((COMPACT, 3), (ISOLATED, 0)):
        group = {"uuid": "g", "members": [], "hosts": [], "policy": None}
        said = {key: [value] for key, value in hints.items()}
        spec = request_spec(
            {
                "flavor": flavor,
                "instance_group": group,
                "scheduler_hints": said,
                "instance_uuid": "s",
                "num_instances": 1,
            }
        )
        assert len(asked.filter_all(hosts, spec)) == passed, hints
    assert counted == ["unable"]
