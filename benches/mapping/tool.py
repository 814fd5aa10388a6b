"""Maps one instance by one tool: prints the host of every rank and the CPU seconds of the call.

`python tool.py TOOL FILE SEED`, with an interpreter that has the tool; FILE holds from, to and
weight of every edge, in both directions (`numpy.savez`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

CHILDREN = (16, 8, 8)
RANKS = 1_024


def rows(edges: Any) -> tuple[Any, Any, Any]:
    """The edges as compressed rows: index of each row's first entry, columns, weights."""
    order = np.lexsort((edges[1], edges[0]))
    a, b, weight = (side[order] for side in edges)
    keys, place = np.unique(a * RANKS + b, return_inverse=True)
    first = np.searchsorted(keys // RANKS, np.arange(RANKS + 1))
    return first, keys % RANKS, np.bincount(place, weights=weight).astype(np.int64)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its CPU seconds."""
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


def topolane(effort: str, edges: Any, seed: int) -> tuple[Any, float]:
    """Topolane's map on one thread, including the conversion of the matrix."""
    from topolane import _engine

    text = f'name = "m"\n[[site]]\nname = "core"\nchildren = {list(CHILDREN)}\nparents = [1, 1, 1]\n'
    machine = _engine.Machine.parse(text, "machine", "toml")

    def call() -> Any:
        traffic = _engine.Traffic.of(RANKS, *(np.ascontiguousarray(side) for side in edges))
        nodes = list(range(RANKS))
        return _engine.map_ranks(
            machine, nodes, traffic, effort=effort, seed=seed, threads=1, node_links=True
        )

    mapping, cpu = timed(call)
    return mapping.slots, cpu


def sharedmap(mode: str, edges: Any, seed: int) -> tuple[Any, float]:
    """SharedMap's map on one thread."""
    from chszlablib import Decomposition, Graph

    first, columns, weights = rows(edges)
    graph = Graph.from_csr(first.astype(np.int64), columns.astype(np.int32), edge_weights=weights)

    def call() -> Any:
        return Decomposition.process_map(
            graph, CHILDREN, (2, 4, 6), mode=mode, imbalance=0.0, threads=1, seed=seed
        )

    result, cpu = timed(call)
    return result.assignment, cpu


def kahip(mode: str, edges: Any, seed: int) -> tuple[Any, float]:
    """Multisection with KaFFPa: first into pods, then each pod into leaves."""
    import kahip as library

    first, columns, weights = rows(edges)

    def part(ranks: Any, parts: int) -> list[Any]:
        number = np.full(RANKS, -1)
        number[ranks] = np.arange(len(ranks))
        heads, tails, values = [0], [], []
        for rank in ranks:
            row = slice(first[rank], first[rank + 1])
            inside = number[columns[row]] >= 0
            tails += number[columns[row]][inside].tolist()
            values += weights[row][inside].tolist()
            heads.append(len(tails))
        ones = [1] * len(ranks)
        level = getattr(library, mode.upper())
        _, found = library.kaffpa(ones, heads, values, tails, parts, 0.0, True, seed, level)
        return [ranks[np.asarray(found) == index] for index in range(parts)]

    def call() -> Any:
        host = np.full(RANKS, -1)
        for pod, inside in enumerate(part(np.arange(RANKS), CHILDREN[2])):
            for leaf, ranks in enumerate(part(inside, CHILDREN[1])):
                base = (pod * CHILDREN[1] + leaf) * CHILDREN[0]
                host[ranks] = base + np.arange(len(ranks)) % CHILDREN[0]
        return host

    return timed(call)


def scotch(balance: str, edges: Any, seed: int) -> tuple[Any, float]:
    """The map of Scotch's static mapping program, including reading and writing. It takes no seed."""
    first, columns, weights = rows(edges)
    with tempfile.TemporaryDirectory() as place:
        graph, target, out = (str(Path(place) / name) for name in ("graph", "target", "map"))
        lines = ["0", f"{RANKS} {len(columns)}", "0 010"]
        for rank in range(RANKS):
            row = slice(first[rank], first[rank + 1])
            pairs = zip(weights[row], columns[row])
            lines.append(" ".join([str(first[rank + 1] - first[rank]), *(f"{w} {c}" for w, c in pairs)]))
        Path(graph).write_text("\n".join(lines) + "\n")
        Path(target).write_text("tleaf 3 8 6 8 4 16 2\n")
        options = [] if balance == "default" else [f"-b{balance}"]
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(["scotch_gmap", *options, graph, target, out], check=True, capture_output=True)
        after = getrusage(RUSAGE_CHILDREN)
        pairs = np.loadtxt(out, skiprows=1, dtype=int)
    host = np.empty(RANKS, int)
    host[pairs[:, 0]] = pairs[:, 1]
    return host, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


TOOLS = {"topolane": topolane, "sharedmap": sharedmap, "kahip": kahip, "scotch": scotch}


def main() -> None:
    """Runs one tool."""
    name, file, seed = sys.argv[1:]
    tool, _, mode = name.partition(" ")
    with np.load(file) as stored:
        edges = (stored["a"], stored["b"], stored["weight"])
    host, cpu = TOOLS[tool](mode, edges, int(seed))
    print(json.dumps({"host": np.asarray(host).tolist(), "cpu": cpu}))


if __name__ == "__main__":
    main()
