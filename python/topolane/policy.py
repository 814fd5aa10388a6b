"""Policies written in Python, and policies by name."""

from __future__ import annotations

import abc
import importlib
import os
import sys
from typing import TYPE_CHECKING, ClassVar

from topolane import _engine
from topolane._engine import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane._engine import Request, StateView

_registered: dict[str, type[Policy]] = {}


class Policy(abc.ABC):
    """A rule that chooses nodes; subclass it, write `choose`, and it runs like those built in.

    `choose` must be pure: the same request in the same state gets the same answer. A subclass is
    registered under its `name`; on the command line it is `module:Class`.
    """

    name: ClassVar[str]
    isolates: ClassVar[bool] = False
    """Whether it promises that no link carries two jobs' traffic."""
    count_only: ClassVar[bool] = False
    """Whether it always finds nodes where enough are free: queues then count instead of asking."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__dict__.get("name", cls.__name__)
        if cls.name in built_in():
            raise InputError(f"policy {cls.__qualname__}: the name {cls.name!r} is that of a policy built in")
        _registered[cls.name] = cls

    @abc.abstractmethod
    def choose(self, request: Request, state: StateView) -> Sequence[int] | None:
        """The nodes for the request, one per slot in rank order, or None if it does not fit now.

        There are at least `request.nodes` free slots in all. A node may be named at most
        `state.free[node]` times; an answer that names others is an error.
        """


def built_in() -> list[str]:
    """The names of the policies built in."""
    return [name for name, _ in _engine.policies()]


def resolve(name: str) -> str | Policy:
    """The policy of that name: one built in, by its present or its former name, one registered, or `module:Class`.

    Raises InputError where there is none.
    """
    if name in _registered:
        return _registered[name]()
    module_name, colon, class_name = name.partition(":")
    if not colon:
        name = _engine.policy_name(name)
        if name not in built_in():
            raise InputError(f"unknown policy {name!r}; there are {', '.join(built_in())}, or module:Class")
        return name
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
        if isinstance(cls, type) and issubclass(cls, Policy):
            return cls()
    except (Exception, SystemExit) as error:
        # The module is the user's: whatever it raises, the reader wants to know that it did.
        why = str(error).partition("\n")[0]
        raise InputError(f"policy {name!r} cannot be loaded: {type(error).__name__}: {why}") from error
    raise InputError(f"policy {name!r} is not a subclass of topolane.Policy")


def isolates(name: str) -> bool:
    """Whether the policy of that name promises isolation."""
    policy = resolve(name)
    return policy in _engine.isolating_policies() if isinstance(policy, str) else policy.isolates
