"""Runs a command; a QEMU as one with slower processors, which looks up each block of instructions again.

python slow.py COMMAND...
"""

from __future__ import annotations

import os
import sys

words = sys.argv[1:]
os.execvp(words[0], [*words, "-d", "nochain"] if words[0].startswith("qemu-system") else words)
