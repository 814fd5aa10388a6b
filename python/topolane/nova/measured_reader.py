"""Keeps measured programs up to date in the background of nova-scheduler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

from oslo_log import log as logging

from topolane.nova.measured import MOST_ENTRIES, MeasuredProgram, usable
from topolane.units import plural

LOG = logging.getLogger(__name__)
LOOK = 0.1
"""Seconds between checks of the reading process."""
EXTRA = 5.0
"""Seconds that the reading process may take in addition to its own time limit, to start and to answer."""


class MeasuredReader:
    """The programs from the source in `[topolane] measured`. A background thread regularly starts a separate
    process that reads them. A request uses the last result and never waits.
    """

    def __init__(self, options: Any) -> None:
        self._options = options
        self._programs: dict[str, MeasuredProgram] = {}
        self._read_once: set[str] = set()
        """The ids of programs that have ended: what they sent does not change."""
        self._process: int | None = None
        self._said: str | None = None
        self._lock = threading.Lock()

    def programs(self) -> list[MeasuredProgram]:
        """The usable programs, newest first. Empty until the first answer has arrived."""
        self.start()
        return usable(list(self._programs.values()), time.time(), self._options.measured_days)

    def start(self) -> None:
        """Starts the background thread if this process has none: threads do not survive a fork."""
        with self._lock:
            if not self._options.measured or self._process == os.getpid():
                return
            self._process = os.getpid()
        threading.Thread(target=self._run, name="topolane-measured", daemon=True).start()

    def _run(self) -> None:
        source = self._options.measured
        while source == self._options.measured:
            try:
                self._take(self._answer())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self._say(str(error))
            except Exception:
                # After any error, the next look may succeed.
                LOG.exception("Measured traffic cannot be read.")
            time.sleep(self._options.measured_interval)

    def _take(self, answer: dict[str, Any]) -> None:
        if "problem" in answer:
            self._say(answer["problem"])
            return
        ids = answer["ids"]
        new = [MeasuredProgram.of(fields) for fields in answer["programs"]]
        every = self._programs | {one.id: one for one in new}
        kept: dict[str, MeasuredProgram] = {}
        left = MOST_ENTRIES
        for id in ids:
            if id in every and len(every[id].sent) <= left:
                kept[id] = every[id]
                left -= len(every[id].sent)
        self._programs = kept
        # Ended programs that exceeded the limit are not read again either.
        self._read_once = {one.id for one in every.values() if one.ended is not None} | self._read_once
        self._read_once &= set(ids)
        if skipped := answer["skipped"]:
            self._say("; ".join(skipped))
        else:
            self._said = None
        if new:
            LOG.info("Measured traffic of %s is known.", plural(len(kept), "program"))

    def _say(self, problem: str) -> None:
        """Logs a problem unless it was the last one logged."""
        if problem != self._said:
            LOG.warning(
                "Measured traffic cannot be read; groups are placed by what was read before and by declared "
                "profiles: %s",
                problem,
            )
        self._said = problem

    def _answer(self) -> dict[str, Any]:
        options = self._options
        question = {
            "source": options.measured,
            "token_file": options.measured_token_file,
            "ca": options.measured_ca,
            "days": options.measured_days,
            "seconds": options.measured_timeout,
            "known": sorted(self._read_once),
        }
        with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as answer:
            json.dump(question, asked)
            asked.seek(0)
            code = self._read(asked, answer)
            answer.seek(0)
            if code is None:
                return {"problem": f"no answer within {options.measured_timeout:g} s"}
            if code != 0:
                return {"problem": f"the process that reads ended with code {code}"}
            found: dict[str, Any] = json.load(answer)
            return found

    def _read(self, asked: IO[str], answer: IO[str]) -> int | None:
        """The exit code of the reading process; None if it had to be killed."""
        reading = subprocess.Popen(
            [sys.executable, "-m", "topolane.nova.measured_sources"],
            stdin=asked,
            stdout=answer,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + self._options.measured_timeout + EXTRA
        # `wait` would block the whole scheduler under eventlet.
        while (code := reading.poll()) is None and time.monotonic() < until:
            time.sleep(LOOK)
        if code is None:
            reading.kill()
        return code
