"""Chooses the traffic profile of a group: the one that it declares, or the one that was measured."""

from __future__ import annotations

from typing import Any

from oslo_log import log as logging

from topolane._engine import InputError, Traffic
from topolane.nova import server_names
from topolane.nova.hints import PlacementHint
from topolane.nova.measured import profile_of
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.traffic import profile

LOG = logging.getLogger(__name__)
MOST_SAID = 1000
_SAID: dict[str, None] = {}
"""The ids of the latest programs for which a contradiction was logged."""


def group_traffic(
    spec: Any, hint: PlacementHint, running: list[str], options: Any, measured: MeasuredReader
) -> Traffic | None:
    """The traffic between the members of a group; None if its servers count as talking equally.

    running: the members that have a host, oldest first; they include the current server if it is being moved.
    """
    problem = ""

    def declared() -> Traffic | None:
        nonlocal problem
        if hint.traffic is None:
            return None
        try:
            return profile(options.traffic_directory, hint.traffic)
        except InputError as error:
            problem = str(error)
            return None

    def from_programs() -> Traffic | None:
        try:
            return _measured(spec, hint, running, measured)
        except Exception:
            # Measured traffic only improves a placement, so the request goes on without it.
            LOG.exception("Measured traffic of group %s cannot be used.", spec.instance_group.uuid)
            return None

    sources = (
        [declared, from_programs] if options.traffic_precedence == "declared" else [from_programs, declared]
    )
    found = next((traffic for source in sources if (traffic := source()) is not None), None)
    if found is None and hint.traffic is not None:
        LOG.warning("A group is placed as if all its servers talked alike: %s", problem)
    elif problem:
        LOG.info("The declared profile of group %s is not used: %s", spec.instance_group.uuid, problem)
    return found


def _measured(spec: Any, hint: PlacementHint, running: list[str], measured: MeasuredReader) -> Traffic | None:
    programs = measured.programs()
    if not programs:
        return None
    context, group = spec._context.elevated(), spec.instance_group
    waiting = set(group.members) - set(running)
    members = [
        *server_names.of_running(context, running),
        *server_names.of_waiting(context, waiting, spec.instance_uuid),
    ]
    found = profile_of(programs, members, hint.traffic, _say_once)
    if found is None:
        return None
    LOG.info("Group %s is placed by the measured traffic of %s.", group.uuid, ", ".join(found.programs))
    return found.traffic


def _say_once(program: str, sentence: str) -> None:
    """Logs the first contradiction of a program."""
    if program in _SAID:
        return
    _SAID[program] = None
    if len(_SAID) > MOST_SAID:
        _SAID.pop(next(iter(_SAID)), None)
    LOG.warning("%s", sentence)
