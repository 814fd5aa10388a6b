"""Slurm and Kubernetes take all wirings; Nova and Flux take trees only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from topolane import InputError, sources
from topolane.cluster.links import Links, links_used
from topolane.cluster.view import ISOLATED, Running, View
from topolane.flux.settings import FluxSettings
from topolane.kubernetes import machine as kubernetes
from topolane.kubernetes.settings import SchedulerSettings
from topolane.nova.topologies import _of_file
from topolane.serve.source import picture
from topolane.slurm.plugin_install import SlurmFacts, check_machine
from topolane.slurm.plugin_machine import read_machine

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "m.toml"
    file.write_text(sources.machine(DRAGONFLY).to("toml"), encoding="utf-8")
    return file


DRAGONFLY = "slingshot(nodes=16, groups=2, switches=4, cables=2)"


@pytest.mark.parametrize(
    "read", [lambda file: FluxSettings(machine=file).check_machine(), _of_file], ids=["flux", "nova"]
)
def test_nova_and_flux_refuse_a_dragonfly_in_one_sentence(
    read: Callable[[str], object], written: Path
) -> None:
    with pytest.raises(InputError, match="the machine is a dragonfly, and only a tree will do here"):
        read(str(written))


@pytest.mark.parametrize(
    ("wiring", "name", "nodes"),
    [("dragonfly", DRAGONFLY, 16), ("torus", "torus(size=4x4x4)", 64), ("HyperX", "hyperx(size=4x4)", 16)],
)
def test_slurm_and_kubernetes_take_all_wirings(tmp_path: Path, wiring: str, name: str, nodes: int) -> None:
    file = tmp_path / "m.toml"
    file.write_text(sources.machine(name).to("toml"), encoding="utf-8")
    known = SchedulerSettings(None)
    for found in (read_machine([file]).machine, kubernetes.machine(str(file), (), known, [])):
        assert (found.wiring, found.nodes) == (wiring, nodes)


def test_install_refuses_a_policy_for_trees(written: Path) -> None:
    """Jobs of such a policy would wait for ever."""
    slurm = SlurmFacts("26.05.5", Path("slurm.conf"), Path(), "", "", None, [], {"batch": "(null)"})
    check_machine([written], slurm, ["batch=isolated-global"], "isolated")
    for policies, jobs_may in ((["batch=dedicated"], ""), ([], "share-links,dedicated")):
        with pytest.raises(InputError, match="dedicated .*writes no routes for a dragonfly"):
            check_machine([written], slurm, policies, jobs_may)


def running(number: int, nodes: tuple[int, ...]) -> Running:
    return Running(number, str(number), "", "", nodes, 0, None, link_use=ISOLATED)


def test_what_jobs_may_use_is_said_by_groups() -> None:
    """On 2 groups of 4 switches with 2 nodes each: a job on one switch uses nothing; two jobs over both groups meet."""
    machine = sources.machine(DRAGONFLY)
    jobs = (running(1, (0, 1)), running(2, (2, 4)), running(3, (6, 8)), running(4, (7, 9)))
    links = Links(machine, View(0, jobs, ()))
    assert [name for name, _ in links.of(jobs[0])] == []
    assert [name for name, _ in links.of(jobs[1])] == ["group0"]
    assert links.of(jobs[2]) == [("group0", ["4"]), ("group1", [])]
    assert links.met(jobs[3]) == ["3"] and links.shared() > 0
    (said, *_) = links_used("There", jobs[2], links.of(jobs[2]), "job", links.words)
    assert said == "There: it may use the links of group0, group1."


def test_the_page_draws_no_uplinks_of_a_dragonfly() -> None:
    assert picture(sources.machine(DRAGONFLY))["uplinks"] == []
    assert picture(sources.machine("fat-tree(radix=4)"))["uplinks"]
