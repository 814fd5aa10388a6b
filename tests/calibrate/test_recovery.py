"""On simulated clusters with known parameters, calibration finds them again, within 5 %.

SimGrid's SMPI runs the measuring program itself; its factors on latency and bandwidth are 1, so that the
platform's numbers are what a program meets.
"""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import topolane
from clusters import QDR, Calibrate, Cluster, needs
from topolane._engine import Traffic, contend

WITHIN = 0.05
PASSES = 4  # a copied byte passes to or from memory so often in the model shared-memory

CLUSTERS = {
    "gigabit": (Cluster(1.25e8, 1.25e8, 2.5e-5, 2e9, 5e9, 6e-7), 2, 6),
    "one flow does not fill the link": (Cluster(3.2e9, 1.1e9, 1.3e-6, 4e9, 9e9, 4e-7), 2, 6),
    "hundred gigabit": (Cluster(1.25e10, 1.25e10, 1e-6, 6e9, 1.1e10, 3e-7), 3, 6),
    "infiniband": (QDR, 5, 4),
    "infiniband, all factors above 1": (Cluster(4e9, 4e9, 2e-6, 3e9, 5e9, 5e-7, (1.1, 1.2, 1.5)), 4, 6),
}


def known(cluster: Cluster) -> dict[str, float]:
    """The parameters of `[node]` that the cluster has."""
    values = {
        "flow-bandwidth": cluster.flow,
        "latency": cluster.latency,
        "copy-bandwidth": cluster.copy,
        "memory-bandwidth": PASSES * cluster.memory,
        "copy-latency": cluster.copy_latency,
    }
    if cluster.penalties is None:
        return values | {"nic-bandwidth": cluster.link}
    return values | dict(zip(("incoming", "outgoing", "crowded"), cluster.penalties))


@needs("smpicc", "smpirun", package="libsimgrid-dev")
@pytest.mark.parametrize("name", CLUSTERS)
def test_known_parameters_are_recovered(calibrate: Calibrate, name: str) -> None:
    cluster, nodes, processes = CLUSTERS[name]
    launcher = cluster.write(calibrate.directory, nodes, processes)
    plan = ("--nodes", nodes, "--processes", processes, "--repetitions", 5)
    result = calibrate("--mpicc", "smpicc", "--launch", launcher, *plan)
    assert result["node"]["penalty"]["model"] == ("infiniband" if cluster.penalties else "fair")
    found = result["node"] | result["node"]["penalty"]
    print(f"\n{name}: {nodes} nodes of {processes} processes")
    for key, true in known(cluster).items():
        print(f"  {key:17} known {true:<12.5g} fitted {found[key]:<12.5g} {found[key] / true - 1:+.2%}")
    for key, true in known(cluster).items():
        assert found[key] == pytest.approx(true, rel=WITHIN), key
    models_say_what_was_measured(calibrate.directory / "calibration/machine.toml", result["rates"])


def models_say_what_was_measured(path: Path, rates: dict[str, dict[str, float]]) -> None:
    """The written machine gives every flow of every pattern, by the models, the rate that was measured."""
    routing = topolane.machine(path).routing("d-mod-k")
    for pattern, by_sharers in rates.items():
        for text, measured in by_sharers.items():
            k = int(text)
            senders, receivers = (
                numpy.arange(k, dtype=numpy.uint32),
                numpy.arange(k, 2 * k, dtype=numpy.uint32),
            )
            traffic = Traffic.of(2 * k, senders, receivers, numpy.full(k, 1e6))
            here, others = [0] * k, list(range(1, k + 1))
            ends = {
                "pairs": (here, [1] * k),
                "inside": (here, here),
                "fan-out": (here, others),
                "fan-in": (others, here),
            }[pattern]
            contended = contend(routing, "full", [([*ends[0], *ends[1]], traffic)])
            assert contended.rates[0] == pytest.approx([measured] * k, rel=WITHIN), (pattern, k)
