"""Takes out of a command's output what differs from run to run: paths, ids, times, speeds, the verdict."""

from __future__ import annotations

import re
from pathlib import Path

_RULES = [
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b\d+ min \d\d s\b|\b\d+(\.\d+)? s\b"), "TIME"),
    (re.compile(r"[\d,.]+ MB/s"), "SPEED MB/s"),
    (re.compile(r"[\d,]+ rows/s"), "SPEED rows/s"),
    # Only runs that last have a verdict, and on a busy machine short ones do.
    (re.compile(r"^limit: .*\n(  .*\n)*", re.MULTILINE), ""),
    # Only a machine that is slow enough tells of progress.
    (re.compile(r"\n--- stderr\n(generating: .*\n)+\Z"), ""),
    (re.compile(r"^(generating: ).*\n", re.MULTILINE), ""),
]
# The last two columns of the accounts: seconds and MB/s.
_ACCOUNTS_LINE = re.compile(r" +\d+\.\d\d +(-|[\d,.]+)$", re.MULTILINE)
_ACCOUNTS_HEADING = re.compile(r" +seconds +MB/s$", re.MULTILINE)
_RULE_LINE = re.compile(r"^-+$", re.MULTILINE)


def stable(text: str, *folders: Path) -> str:
    """The text with `folders` called FOLDER, and so on."""
    for folder in sorted(map(str, folders), key=len, reverse=True):
        text = text.replace(folder, "FOLDER")
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = _ACCOUNTS_HEADING.sub("  seconds  MB/s", _ACCOUNTS_LINE.sub("  TIME  SPEED", text))
    return _RULE_LINE.sub("----", text)
