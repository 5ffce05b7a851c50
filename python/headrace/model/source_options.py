"""Numbers that a source of files may be given."""

from __future__ import annotations

from typing import Final

# How long the first byte of a pipe may take.
DEFAULT_WAIT_SECONDS: Final = 60
MAXIMUM_WAIT_SECONDS: Final = 7 * 24 * 3600
