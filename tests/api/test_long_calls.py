"""A call of the engine that takes long lets other threads of Python run, and answers to signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest
from waiting import DEADLINE, until

BEGIN = """
import os, signal, sys, threading, topolane
from topolane import _engine
from topolane._engine import Machine, Profile, State, Traffic

def ended(number, frame):
    print("ended by the signal", flush=True)
    os._exit(0)

signal.signal(signal.SIGTERM, ended)
# Only a call that lets go of the interpreter lets the other thread run before its end.
sys.setswitchinterval(1000)

def ask():
    # Python runs here, so the call has let go of the interpreter; then the signal comes.
    print("running", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

def during(call):
    threading.Timer(0.5, ask).start()
    call()
    print("the call was over before", flush=True)

cab = topolane.machine("cab")
"""

CALLS = {
    "map_ranks": """
        traffic = Traffic.pattern("alltoall", 1024)
        during(lambda: _engine.map_ranks(cab, list(range(1024)), traffic, effort="strong", threads=1))
    """,
    "contend": """
        jobs = [(list(range(1024)), Traffic.pattern("alltoall", 1024))] * 4
        during(lambda: _engine.contend(cab.routing("d-mod-k"), "max-min", jobs))
    """,
    "rank_k": """
        jobs = [(list(range(1024)), Traffic.pattern("alltoall", 1024))] * 4
        program = Profile(1024, "alltoall")
        call = lambda: _engine.rank_k(State(cab), cab.routing("d-mod-k"), "first-fit", program, jobs=jobs)
        during(call)
    """,
    "Traffic.pattern": """
        during(lambda: [Traffic.pattern("alltoall", 4096), Traffic.pattern("alltoall", 4095)])
    """,
    "Machine.parse": """
        lines = "".join(f"SwitchName=s{i} Nodes=n{i}_[0-19]\\n" for i in range(40000))
        text = lines + "SwitchName=top Switches=s[0-39999]\\n"
        during(lambda: Machine.parse(text, "topology.conf"))
    """,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_long_call_answers_to_signals(name):
    """The handler ends the process, so the output says whether it ran during the call."""
    program = BEGIN + textwrap.dedent(CALLS[name])
    # Should the engine crash, Python says in which thread.
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout.splitlines() == ["running", "ended by the signal"], done


PARTITIONS = """
import os, signal
from topolane._engine import Traffic, parts

heard = 0

def hear(number, frame):
    global heard
    heard += 1

signal.signal(signal.SIGTERM, hear)
traffic = Traffic.pattern("alltoall", 512)
print("ready", flush=True)
while heard < 50:
    parts(traffic, [256, 256])
print("went on", flush=True)
os._exit(0)  # At its end Python would let go of its handlers.
"""


def test_a_partition_leaves_signals_to_the_program():
    """A library that catches SIGTERM while it partitions would end the process (METIS jumps to where its own thread began)."""
    with subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", PARTITIONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        program.stdout.readline()
        until(lambda: program.send_signal(signal.SIGTERM) or program.poll() is not None, "the program ends")
        assert (program.stdout.read(), program.stderr.read()) == ("went on\n", "")
        assert program.returncode == 0
