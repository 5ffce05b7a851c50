"""Fixtures of the tests of drawn packages."""

from tests.report.conftest import browser

__all__ = ["browser"]
