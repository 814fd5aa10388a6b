"""Measures one evaluation of contention: the jobs of a large machine, with every pattern among them.

`python benches/contention.py` prints CPU seconds by model as JSON: laying traffic over routes, each job
alone, all together, and the rate of every flow.
"""

from __future__ import annotations

import json
import time

import numpy as np
from topolane import _engine, machine
from topolane._engine import Traffic

JOBS = (("suba2a", 4096), ("stencil4d", 2552), ("unstructured3d", 2000), ("pairs", 2000))
"""10,648 nodes of sc18-network, all in use."""


def main() -> None:
    """Evaluates and prints."""
    fabric = machine("sc18-network")
    ways = fabric.routing("d-mod-k")
    nodes = np.random.default_rng(1).permutation(fabric.nodes)
    ends = np.cumsum([count for _, count in JOBS])
    jobs = [
        (nodes[end - count : end].tolist(), Traffic.pattern(pattern, count))
        for end, (pattern, count) in zip(ends, JOBS)
    ]
    seconds = {}
    for model, _ in _engine.models():
        before = time.process_time()
        _engine.contend(ways, model, jobs)
        seconds[model] = time.process_time() - before
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
