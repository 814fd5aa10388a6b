"""Compares rank maps of Topolane and other tools on four instances, and assignments with a known optimum."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
from figures import Setting, figure
from measure import BenchError, Row, cost

from mapping.instances import INSTANCES, RANKS, mean_hops, shuffled
from mapping.nugent import GRIDS, instance

PEERS = ("chszlablib==0.5.27", "kahip==3.25", "numpy==2.4.6")
OURS = ("topolane fast", "topolane eco", "topolane strong")
OTHERS = ("sharedmap eco", "sharedmap strong", "kahip eco", "kahip strong", "scotch default", "scotch 0")
TOOL = Path(__file__).resolve().parent / "tool.py"
UNIT = "milli-hops"
"""The unit: mean hops times 1,000."""
ROUNDING = 0.5
"""Half of the last digit of the targets, which have three decimals."""


@figure
def mapping(setting: Setting) -> list[Row]:
    """Topolane's maps alone, compared with the targets."""
    return compared(setting, {name: setting.python for name in OURS})


@figure
def mapping_peers(setting: Setting) -> list[Row]:
    """Topolane's and other tools' maps of the same instances, measured in turn."""
    python = install(setting.scratch)
    return compared(setting, {name: setting.python for name in OURS} | dict.fromkeys(OTHERS, python))


def install(scratch: Path) -> str:
    """Makes a virtual environment with the other tools. Returns its interpreter."""
    place = scratch / "mapping-venv"
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *PEERS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"{' '.join(PEERS)} do not install:\n{done.stderr[-500:]}")
    return python


def compared(setting: Setting, tools: dict[str, str]) -> list[Row]:
    """Mean hops and CPU seconds of each tool on each instance, with another seed in each repetition."""
    rows = []
    for name, (make, reached) in INSTANCES.items():
        edges = shuffled(make())
        file = setting.scratch / f"{name}.npz"
        np.savez(file, a=edges[0], b=edges[1], weight=edges[2])
        spent: dict[str, float] = {}
        for tool, python in tools.items():
            limit = 1_000 * reached + ROUNDING if tool in OURS[1:] else None
            what = f"{name}: {tool}"
            if tool.startswith("scotch") and shutil.which("scotch_gmap") is None:
                rows.append(Row("mapping", what, UNIT, (), note="no scotch_gmap"))
                continue
            try:
                runs = [run(python, tool, file, seed) for seed in range(setting.repeats)]
            except BenchError as error:
                print(error, file=sys.stderr)
                rows.append(Row("mapping", what, UNIT, (), note="crashed"))
                continue
            found = tuple(1_000 * mean_hops(edges, host) for host, _ in runs)
            broken = sum(len(np.unique(host)) < RANKS for host, _ in runs)
            if broken:
                what += f" (no bijection in {broken} of {len(runs)})"
            rows.append(Row("mapping", what, UNIT, found, limit))
            times = tuple(cpu for _, cpu in runs)
            rows.append(Row("mapping", f"{what}: time", "s CPU", times))
            spent[tool] = float(np.median(times))
        if {"topolane eco", "sharedmap eco"} <= spent.keys():
            ratio = spent["topolane eco"] / spent["sharedmap eco"]
            what = f"{name}: topolane eco, time over that of sharedmap eco"
            rows.append(Row("mapping", what, "times", (ratio,), 1.0))
    return rows


def run(python: str, tool: str, file: Path, seed: int) -> tuple[np.ndarray, float]:
    """The host of each rank, and the CPU seconds used. Each run is a separate process."""
    answer = json.loads(cost([python, TOOL, tool, file, str(seed)]).output)
    return np.asarray(answer["host"]), answer["cpu"]


@figure
def quadratic(setting: Setting) -> list[Row]:
    """The gap to the optimum, in per cent, on instances from the literature or a package."""
    from topolane import _engine

    cases = {name: instance(name) for name in GRIDS}
    with contextlib.suppress(ImportError):
        # An instance of Christofides & Benavent, which SciPy's tests contain.
        from scipy.optimize.tests.test_quadratic_assignment import chr12c

        flow, distance, _ = chr12c()
        cases["chr12c"] = (len(flow), np.ravel(flow).tolist(), np.ravel(distance).tolist(), 11_156)
    rows = []
    for name, (n, flow, distance, best) in cases.items():
        seeds = range(setting.repeats)
        values = [_engine.assign(n, flow, distance, effort="strong", seed=seed)[1] for seed in seeds]
        gaps = tuple(100 * (value / best - 1) for value in values)
        rows.append(Row("quadratic", f"{name}: gap to the optimum {best}", "%", gaps))
    return rows
