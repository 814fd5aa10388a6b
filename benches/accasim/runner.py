"""Runs AccaSim (EASY, first fit) on 1,296 equal nodes. Use the interpreter in which AccaSim is installed.

`python runner.py LOG OUT`. AccaSim 1.1.3 was written for Python 3.5-3.9, so names that have moved since are
first put back where it imports them from.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
from pathlib import Path

NODES = 1_296


def put_back_names() -> None:
    """Puts back into `collections` the abstract classes that were removed in Python 3.10."""
    for name in collections.abc.__all__:
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))


def system(path: Path) -> str:
    """Writes AccaSim's description of the machine, in which a node is one core."""
    machine = {
        "groups": {"node": {"core": 1}},
        "resources": {"node": NODES},
        "equivalence": {"processor": {"core": 1}},
        "start_time": 0,
    }
    path.write_text(json.dumps(machine))
    return str(path)


def main(log: str, out: str) -> None:
    """Runs the log and writes AccaSim's schedule and statistics."""
    put_back_names()
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    Path(out).mkdir(exist_ok=True)
    dispatcher = EASYBackfilling(FirstFit())
    simulator = Simulator(log, system(Path(out) / "system.json"), dispatcher, RESULTS_FOLDER_PATH=out)
    simulator.start_simulation()


if __name__ == "__main__":
    main(*sys.argv[1:])
