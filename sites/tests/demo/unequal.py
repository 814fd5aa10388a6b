"""The second part: one site has faster processors. A program that computes and one that communicates change places."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from files import Place, Scene
from stage import Stage, played, say
from waiting import until

PACE = 20
"""Milliseconds of an iteration of pairs.c, at least."""
SLOW = 0.2
"""About the speed that slow.py leaves: an iteration of compute takes 4.7 times as long. The daemons would time their own
machine, not the emulated processors of their guests, so the manager is given the speeds.
"""
WATCHED = 20.0
"""Seconds over which figures are taken."""


def _on(processor: int, *words: str) -> tuple[str, ...]:
    """Each host has a processor of this machine for itself, so that neither loads the other."""
    return ("taskset", "--cpu-list", str(processor), *words)


SCENE = Scene(
    "mixed",
    {
        "a": Place("east", 2, 1.0, _on(0)),
        "b": Place("west", 2, SLOW, _on(1, sys.executable, str(Path(__file__).parent / "slow.py"))),
    },
    {"g1": "a", "g2": "b", "g3": "b"},
)
TALKING, COMPUTING = ("g1", "g2"), ("g3",)


def play(folder: Path) -> None:
    """The part."""
    say("\n\n# The hosts of the site west emulate processors that are about five times slower.")
    with played(SCENE, folder) as stage:
        stage.topolane("sites", "planning", "pause")
        talking = stage.mpiexec("pairs", f"pairs {PACE} /tmp/stop-pairs", TALKING)
        computing = stage.mpiexec("compute", "compute /tmp/stop-compute", COMPUTING)
        for program in ("pairs", "compute"):
            until(
                lambda program=program: stage.look(f"/programs/{program}").get("epoch"), f"{program} is known"
            )
            stage.client.put(f"/programs/{program}/remaining", {"seconds": 3600})
        time.sleep(60)
        _report(stage)
        stage.topolane("sites", "status")
        stage.topolane("sites", "explain", "pairs")
        say("\n# Now the manager may move guests. The programs run on.")
        began = time.time()
        stage.topolane("sites", "planning", "resume")
        until(
            lambda: _settled(stage),
            "the program that computes is on the fast processors, the other on one site",
        )
        say(f"(so it is {time.time() - began:.0f} s later)")
        _report(stage)
        stage.moves()
        time.sleep(40)
        stage.topolane("sites", "status", "--accuracy")
        stage.stop("compute", computing, COMPUTING, "./compute {}")
        stage.stop("pairs", talking, TALKING, "./pairs 0 {}")


def _settled(stage: Stage) -> bool:
    site = stage.sites()
    return not stage.moving() and site["g1"] == site["g2"] and site["g3"] == "east"


def _report(stage: Stage) -> None:
    """How long the newest iterations took."""
    time.sleep(WATCHED)
    took = [float(ms) for ms in re.findall(r"iteration \d+, ([0-9.]+) ms", stage.said("compute"))][-5:]
    say(f"\n{stage.where()}: an iteration of compute takes {sorted(took)[len(took) // 2]:.0f} ms")
