"""The first part: a program whose chatty pairs sit on two sites, first flat, then in two levels, then moved."""

from __future__ import annotations

import time
from pathlib import Path

from files import Place, Scene
from stage import Stage, played, say
from waiting import until

PACE = 200
"""Milliseconds that an iteration takes at least: emulated guests are slow, and the machine may be busy."""
SENDS = 16
"""Messages point to point in an iteration of pairs.c, of all its ranks."""
MESSAGES = 3
"""The column of a matrix file."""
WATCHED = 20.0
"""Seconds over which figures are taken."""
CORES = 3
"""Of a host: room for one guest more than it starts with, so that guests can change places."""
GUESTS = {"g1": "a", "g2": "a", "g3": "b", "g4": "b"}
SCENE = Scene("pairs", {"a": Place("east", CORES), "b": Place("west", CORES)}, GUESTS)


def play(folder: Path) -> None:
    """The part."""
    with played(SCENE, folder) as stage:
        _flat(stage)
        _moved(stage)


def _flat(stage: Stage) -> None:
    """What crosses the WAN where every rank speaks for itself, with no guest moved."""
    say("\n# The collectives as MPICH does them. Nothing is moved yet.")
    stage.topolane("sites", "planning", "pause")
    program = stage.mpiexec("flat", f"pairs {PACE} /tmp/stop-flat", tuple(GUESTS), "never")
    _report(stage, "flat")
    stage.stop("flat", program, tuple(GUESTS), "./pairs 0 {}")


def _moved(stage: Stage) -> None:
    say("\n# The collectives in two levels.")
    program = stage.mpiexec("pairs", f"pairs {PACE} /tmp/stop-pairs", tuple(GUESTS), "always")
    _report(stage, "pairs")
    stage.topolane("sites", "explain", "pairs")
    say("\n# Now the manager may move guests. The program runs on.")
    say("# It is declared to run for an hour: PUT /programs/pairs/remaining")
    stage.client.put("/programs/pairs/remaining", {"seconds": 3600})
    began = time.time()
    stage.topolane("sites", "planning", "resume")
    until(lambda: _together(stage), "those that talk most are on one site")
    say(f"(those that talk most are on one site {time.time() - began:.0f} s later)")
    time.sleep(5)
    stage.topolane("sites", "status")
    _report(stage, "pairs")
    stage.moves()
    stage.stop("pairs", program, tuple(GUESTS), "./pairs 0 {}")


def _report(stage: Stage, program: str) -> None:
    """Messages between sites in an iteration, over some seconds."""
    until(lambda: stage.look(f"/programs/{program}").get("epoch"), f"{program} knows its sites")
    until(lambda: _counts(stage, program)[0] > 10, f"{program} iterates")
    time.sleep(5)
    first = _counts(stage, program)
    time.sleep(WATCHED)
    second = _counts(stage, program)
    iterations, point_to_point, collective = (now - before for now, before in zip(second, first))
    say(
        f"{program}, {stage.where()}: {iterations:.0f} iterations in {WATCHED:.0f} s; between the sites an "
        f"iteration sends {point_to_point / iterations:.1f} messages point to point, "
        f"{collective / iterations:.1f} in collectives"
    )


def _counts(stage: Stage, program: str) -> tuple[float, float, float]:
    """Iterations so far, and the messages that crossed if all guests were all the time where they are now."""
    site = stage.sites()
    sums = []
    for kinds in ((0,), (1, 2)):
        rows = [row for kind in kinds for row in _rows(stage, program, kind)]
        sums.append(sum(count for near, far, count in rows if site[f"g{near + 1}"] != site[f"g{far + 1}"]))
        if kinds == (0,):
            iterations = sum(count for _, _, count in rows) / SENDS
    return iterations, sums[0], sums[1]


def _rows(stage: Stage, program: str, kind: int) -> list[tuple[int, int, float]]:
    text = stage.client.text(f"/programs/{program}/matrix", kind=kind)
    rows = [line.split(",") for line in text.splitlines() if line[:1].isdigit()]
    return [(int(row[0]), int(row[1]), float(row[MESSAGES])) for row in rows]


def _together(stage: Stage) -> bool:
    """Whether the ranks that talk most are on one site each, two by two or all."""
    site = stage.sites()
    return not stage.moving() and site["g1"] == site["g3"] and site["g2"] == site["g4"]
