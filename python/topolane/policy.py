"""Resolves policies by name: built-in ones, those written in Python, and those of plug-ins."""

from __future__ import annotations

import abc
import importlib
import os
import sys
from typing import TYPE_CHECKING, ClassVar

from topolane._engine import InputError, isolating_policies, policies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint

    from topolane._engine import Request, StateView

GROUP = "topolane.policies"
"""The group of entry points through which distributions offer policies."""

SEGMENTS = (
    "segments",
    "segments-isolated",
    "segments-dedicated",
    "slurm-block",
    "kueue-tas",
    "kueue-tas-best-fit",
    "kueue-tas-least-free",
)
"""The built-in policies that keep segments. Others place a request as if it had none."""

_registered: dict[str, type[Policy]] = {}


class Policy(abc.ABC):
    """A rule that chooses nodes. Subclass it and write `choose`; then it runs like a built-in policy.

    `choose` must be pure: the same request in the same state gets the same answer. A subclass is registered
    under its `name`. On the command line it is `module:Class`, or its name if a plug-in offers it.
    """

    name: ClassVar[str]
    isolates: ClassVar[bool] = False
    """Whether the policy promises that no link carries two jobs' traffic."""
    count_only: ClassVar[bool] = False
    """Whether the policy always finds nodes if enough are free. Then queues count nodes instead of asking it.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__dict__.get("name", cls.__name__)
        if cls.name in built_in():
            raise InputError(f"policy {cls.__qualname__}: the name {cls.name!r} is that of a policy built in")
        _registered[cls.name] = cls

    @abc.abstractmethod
    def choose(self, request: Request, state: StateView) -> Sequence[int] | None:
        """The nodes for the request, one per slot in rank order; None if it does not fit now.

        There are at least `request.nodes` free slots in all. A node may be named at most `state.free[node]`
        times; other answers are errors.
        """


def built_in() -> list[str]:
    """The names of the built-in policies."""
    return [name for name, _ in policies()]


def plugins() -> dict[str, EntryPoint]:
    """The policies of installed plug-ins by name, not yet loaded. Names of built-in policies are skipped."""
    from importlib.metadata import entry_points  # imported here because it takes a while

    return {one.name: one for one in entry_points(group=GROUP) if one.name not in built_in()}


def resolve(name: str) -> str | Policy:
    """The policy with this name: a built-in or registered one, one of a plug-in, or `module:Class`.

    Raises InputError if there is none.
    """
    if name in _registered:
        return _registered[name]()
    module_name, colon, class_name = name.partition(":")
    if not colon:
        return name if name in built_in() else _of_plugin(name)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return _loaded(repr(name), lambda: getattr(importlib.import_module(module_name), class_name))


def _of_plugin(name: str) -> Policy:
    offered = plugins()
    if name not in offered:
        names = ", ".join([*built_in(), *sorted(offered)])
        raise InputError(f"unknown policy {name!r}; there are {names}, or module:Class")
    one = offered[name]
    words = f"{name!r} of the plug-in {one.dist.name if one.dist else one.value}"
    found = _loaded(words, one.load)
    if found.name != name:
        raise InputError(f"policy {words} calls itself {found.name!r}: both names must be the same")
    return found


def _loaded(words: str, load: Callable[[], object]) -> Policy:
    """The policy whose class `load` returns. Raises InputError, which calls the policy `words`."""
    try:
        cls = load()
        if isinstance(cls, type) and issubclass(cls, Policy):
            return cls()
    except (Exception, SystemExit) as error:
        # The module is the user's and may raise anything; the error must reach the user.
        why = str(error).partition("\n")[0]
        raise InputError(f"policy {words} cannot be loaded: {type(error).__name__}: {why}") from error
    raise InputError(f"policy {words} is not a subclass of topolane.Policy")


def isolates(name: str) -> bool:
    """Whether the policy with this name promises isolation."""
    policy = resolve(name)
    return policy in isolating_policies() if isinstance(policy, str) else policy.isolates
