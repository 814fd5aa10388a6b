"""A policy in Python: fill the emptiest leaf first, then the next.

topolane compare --policies first-fit,examples.emptiest_leaf:EmptiestLeaf
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topolane import Policy

if TYPE_CHECKING:
    from topolane._engine import Request, StateView


class EmptiestLeaf(Policy):
    """The leaf with most free slots first: jobs spread over few leaves, leaves fill evenly."""

    name = "emptiest-leaf"

    def choose(self, request: Request, state: StateView) -> list[int]:
        """The nodes, leaf by leaf; equal leaves in index order."""
        leaves = [
            (-int(state.free[start:end].sum()), start, end) for start, end, _ in state.machine.groups(1)
        ]
        nodes: list[int] = []
        for _, start, end in sorted(leaves):
            for node in range(start, end):
                nodes += [node] * min(int(state.free[node]), request.nodes - len(nodes))
        return nodes
