"""Live systems take trees only: what they publish about links is about uplinks of groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from topolane import InputError, sources
from topolane.flux.settings import FluxSettings
from topolane.kubernetes import machine as kubernetes
from topolane.kubernetes.settings import SchedulerSettings
from topolane.nova.topologies import _of_file
from topolane.serve.source import picture
from topolane.slurm.plugin_machine import read_machine

if TYPE_CHECKING:
    from collections.abc import Callable

DRAGONFLY = "slingshot(nodes=16, groups=2, switches=4, cables=2)"


@pytest.mark.parametrize(
    "read",
    [
        lambda file: read_machine([Path(file)]),
        lambda file: kubernetes.machine(file, (), SchedulerSettings(None), []),
        lambda file: FluxSettings(machine=file).check_machine(),
        _of_file,
    ],
    ids=["slurm", "kubernetes", "flux", "nova"],
)
def test_each_refuses_a_dragonfly_in_one_sentence(read: Callable[[str], object], tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(sources.machine(DRAGONFLY).to("toml"), encoding="utf-8")
    with pytest.raises(
        InputError, match="the machine is a dragonfly, but live systems take only trees so far"
    ):
        read(str(file))


def test_the_page_draws_no_uplinks_of_a_dragonfly() -> None:
    assert picture(sources.machine(DRAGONFLY))["uplinks"] == []
    assert picture(sources.machine("fat-tree(radix=4)"))["uplinks"]
