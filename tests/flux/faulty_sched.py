"""Our scheduler module with an engine that fails: `when=` says at which passes, at jobs of 26 nodes, at jobs that come again, or at jobs that run already.

`most=` and `calm=` set how many failures within how many seconds are too many.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))

from topolane._engine import InputError
from topolane.flux.scheduler import TopolaneScheduler


class Panic(BaseException):
    """As a panic of the engine reaches Python: no Exception."""


class Faulty:
    """An engine whose pass fails."""

    passes = 0

    def __init__(self, engine, when):
        self._engine, self._when, self._known = engine, when, set()

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def submit(self, jobid, nodes, *words, **more):
        if self._when == "wide" and nodes == 26:
            raise Panic("broken on purpose")
        if self._when == "again" and jobid in self._known:
            return "refused on purpose"
        self._known.add(jobid)
        return self._engine.submit(jobid, nodes, *words, **more)

    def adopt(self, *words, **more):
        if self._when == "running":
            raise InputError("refused on purpose")
        return self._engine.adopt(*words, **more)

    def start(self, now):
        Faulty.passes += 1
        if self._when == "always" or (self._when == "third" and Faulty.passes % 3 == 0):
            raise Panic("broken on purpose")
        return self._engine.start(now)


class FaultyScheduler(TopolaneScheduler):
    def __init__(self, handle, *words):
        said = dict(word.split("=", 1) for word in words)
        self.when = said.pop("when")
        self.most_failures = int(said.pop("most", self.most_failures))
        self.calm = float(said.pop("calm", self.calm))
        super().__init__(handle, *[f"{name}={value}" for name, value in said.items()])

    def _new_engine(self, fabric):
        return Faulty(super()._new_engine(fabric), self.when)


def mod_main(handle, *words):
    FaultyScheduler(handle, *words).run()
