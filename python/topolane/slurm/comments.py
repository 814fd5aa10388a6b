"""What the daemon writes into a job's comment for its user, and reads back.

slurmrestd lets the daemon write only to this field. The user's own comment is kept after ` | `.
"""

from __future__ import annotations

import re

from topolane.slurm.records import Job

TRAFFIC = re.compile(r"(?<![^\s,;])traffic=([^\s;]*)")
"""A word of a user's comment."""
PREFIX = "topolane: "
MARK = "topolane"
"""The submission hook writes this into the administrator's comment of a job that it holds for the daemon."""
HELD_BY_USER = PREFIX + "held by its user"
"""Written by the submission hook: the user holds the job, so the daemon does not start it."""
TO_BE_PLACED = PREFIX + "to be placed"
"""Written by the submission hook when its user releases a job, and by the daemon when it holds a job again."""


def with_user_comment(text: str, job: Job) -> str:
    """The comment of a job: `text`, then what its user wrote there."""
    own = user_comment(job.comment)
    return f"{text} | {own}" if own else text


def user_comment(comment: str) -> str:
    """The part of a comment that the user wrote."""
    if not comment.startswith(PREFIX):
        return comment
    return comment.partition(" | ")[2]


def named_traffic(job: Job) -> str | None:
    """The traffic that the user's comment names: a pattern or the file of a matrix."""
    found = TRAFFIC.search(user_comment(job.comment))
    return found[1] if found else None


def daemon_comment(comment: str) -> str:
    """The part of a comment that the daemon or the submission hook wrote; empty without one."""
    return comment.partition(" | ")[0] if comment.startswith(PREFIX) else ""


def placement_comment(hosts: str, *, as_asked: bool) -> str:
    """The comment of a job that is released onto `hosts`, in order of its ranks; `as_asked` if its user named
    them.
    """
    return f"{PREFIX}{'as asked ' if as_asked else ''}on {hosts}"


def placed_by_daemon(job: Job) -> bool:
    """Whether its required nodes were written by the daemon, and not by its user."""
    return daemon_comment(job.comment).startswith(f"{PREFIX}on ")


def was_released(job: Job) -> bool:
    """Whether the daemon has released it onto nodes, and has not held it since."""
    return daemon_comment(job.comment).startswith((f"{PREFIX}on ", f"{PREFIX}as asked on "))


def has_hook_mark(job: Job) -> bool:
    """Whether the submission hook held it for the daemon."""
    return job.note == MARK or job.note.startswith(MARK + " ")
