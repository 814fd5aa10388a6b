"""Runs RFold's own code: `peer.py DIR trace JOBS SEED TRACE`, or `peer.py DIR replay POLICY TRACE STARTS`.

The first draws a trace with RFold's generator. The second replays one in RFold's simulator and writes when each job starts and
ends. It runs in a Python that has what RFold needs.
"""

from __future__ import annotations

import contextlib
import csv
import os
import sys
from pathlib import Path

SIZE = "16,16,16"
BLOCK = "4"


class EnoughError(Exception):
    """All jobs of the trace were drawn."""


def draw(jobs: int, seed: int, trace: Path) -> None:
    """Writes a trace of RFold's mixed workload: jobs of one to three dimensions, durations of Philly."""
    sys.argv = ["launch.py", "--dim", SIZE, "--rsize", BLOCK]
    import numpy as np
    import simpy
    from Cluster.cluster import Cluster
    from Cluster.model_builder import build_torus
    from ClusterManager.manager import ClusterManager
    from common.flags import IAT_DIST, PHILLY_TRACE
    from common.job import FormShape
    from WorkloadGen.generator import MixedWorkload

    np.random.seed(seed)
    environment = simpy.Environment()
    cluster = Cluster(environment, spec=build_torus(name="pod", dimension=(16, 16, 16)))
    drawn = []

    class Collecting(ClusterManager):
        def submitJob(self, job: object) -> None:
            drawn.append(job)
            if len(drawn) == jobs:
                raise EnoughError

    manager = Collecting(environment, cluster=cluster, sim_njobs=jobs)
    workload = MixedWorkload(
        environment,
        cluster_mgr=manager,
        ndim=3,
        rsize=int(BLOCK),
        arrival_time_file=IAT_DIST,
        job_size_file="",
        dur_trace=PHILLY_TRACE,
        desired_dim=-1,
        shape_multiple=2,
    )
    environment.process(workload.run())
    with contextlib.suppress(EnoughError):
        environment.run()
    with trace.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["#job id", "arrival time (sec)", "topology", "shape", "size", "duration (sec)"])
        for job in drawn:
            shape = FormShape(job.shape, job.topology)
            rows.writerow(
                [job.uuid, job.arrival_time_sec, job.topology.name, shape, job.size, job.duration_sec]
            )


def replay(policy: str, trace: Path, starts: Path) -> None:
    """Replays a trace under one of RFold's policies until nothing is left to do."""
    sys.argv = ["launch.py", "--dim", SIZE, "--rsize", BLOCK, "--place_policy", policy]
    import simpy
    from Cluster.cluster import Cluster
    from Cluster.model_builder import build_torus
    from ClusterManager.manager import ClusterManager
    from WorkloadGen.trace import TraceReplay

    environment = simpy.Environment()
    cluster = Cluster(environment, spec=build_torus(name="pod", dimension=(16, 16, 16)))
    jobs = sum(not line.startswith("#") for line in trace.read_text().splitlines())
    manager = ClusterManager(environment, cluster=cluster, sim_njobs=jobs + 1)
    workload = TraceReplay(environment, tracefile=str(trace), cluster_mgr=manager)
    environment.process(manager.schedule())
    environment.process(workload.run())
    environment.run()
    with starts.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["size", "arrival", "start", "end"])
        for job in manager.job_stats.values():
            if job.completion_time_sec is not None:
                rows.writerow([job.size, job.arrival_time_sec, job.sched_time_sec, job.completion_time_sec])


if __name__ == "__main__":
    checkout, what, *rest = sys.argv[1:]
    paths = [Path(path).resolve() for path in rest[1:]]
    os.chdir(checkout)
    sys.path.insert(0, checkout)
    if what == "trace":
        draw(int(rest[0]), int(rest[1]), paths[1])
    else:
        replay(rest[0], *paths)
