"""Where rows come from: files and the generator."""

from headrace.sources.files import FileCommit, PlanSlices, format_notes, snapshot_files
from headrace.sources.generate import snapshot_generated

__all__ = ["FileCommit", "PlanSlices", "format_notes", "snapshot_files", "snapshot_generated"]
