"""Place parallel jobs where the network lets them run at full speed.

import topolane

machine = topolane.machine("cab")
workload = topolane.workload("cab-aug", seed=1)
run = topolane.simulate(workload, machine, policy="isolated", queue="easy")
run.summary["mean_wait"], run.jobs, run.utilization     # seconds, data frames
"""

from topolane._engine import Decision, InputError, Machine, Refusal, Scheduler, State, Workload
from topolane.policy import Policy
from topolane.run import Network, Run, Settings, simulate
from topolane.sources import Shape, machine, workload
from topolane.sweep import Task, compare

__all__ = [
    "Decision",
    "InputError",
    "Machine",
    "Network",
    "Policy",
    "Refusal",
    "Run",
    "Scheduler",
    "Settings",
    "Shape",
    "State",
    "Task",
    "Workload",
    "compare",
    "machine",
    "simulate",
    "workload",
]
