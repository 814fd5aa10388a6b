"""An agent in dom0 of the study's machine: takes the domains that standard input names, until it ends.

python -m topolane_gang.study.xen_agent POLICY CORE...
"""

from __future__ import annotations

import sys

from topolane_gang import xen
from topolane_gang.agent import Agent
from topolane_gang.xen import XenPool


def main() -> None:
    """Says when it is ready, and names each domain that it has taken."""
    policy, *cores = sys.argv[1:]
    with Agent(policy, pool=XenPool(policy, [int(core) for core in cores], "pause")) as agent:
        print("ready", flush=True)
        for line in sys.stdin:
            name = line.strip()
            agent.adopt_domain(name, xen.domain(name))
            print(name, flush=True)


if __name__ == "__main__":
    main()
