"""What is written into a job's comment for its user, and read back from it.

The comment is the only place that slurmrestd lets one write to. The user's own stays behind ` | `.
"""

from __future__ import annotations

from topolane.slurm.records import Job

OURS = "topolane: "
MARK = "topolane"
"""What the submission hook writes into the administrator's comment of a job that it holds for us."""
HELD_BY_USER = OURS + "held by its user"
"""Written by the submission hook: not to be started until released."""
TO_BE_PLACED = OURS + "to be placed"
"""Written by the submission hook on a release, and here on a job that is held anew."""


def with_own(text: str, job: Job) -> str:
    """`text` as the job's comment, with what its user wrote there."""
    own = users(job.comment)
    return f"{text} | {own}" if own else text


def users(comment: str) -> str:
    """What the user wrote."""
    if not comment.startswith(OURS):
        return comment
    return comment.partition(" | ")[2]


def ours(comment: str) -> str:
    """What was written for the user, or nothing."""
    return comment.partition(" | ")[0] if comment.startswith(OURS) else ""


def placed(hosts: str, *, as_asked: bool) -> str:
    """On a job that is released onto `hosts`, in order of its ranks; `as_asked` if its user named them."""
    return f"{OURS}{'as asked ' if as_asked else ''}on {hosts}"


def placed_here(job: Job) -> bool:
    """Whether the nodes that it requires are those it was once given, not its user's wish."""
    return ours(job.comment).startswith(f"{OURS}on ")


def was_released(job: Job) -> bool:
    """Whether it was released onto nodes and not been held by us since."""
    return ours(job.comment).startswith((f"{OURS}on ", f"{OURS}as asked on "))


def marked(job: Job) -> bool:
    """Whether it was held for us when it was submitted."""
    return job.note == MARK or job.note.startswith(MARK + " ")
