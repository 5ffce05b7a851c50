"""Where rows come from: files and the generator."""

from headrace.sources.files import FileCommit, PlanSlices, format_notes, snapshot_files
from headrace.sources.generate import snapshot_generated
from headrace.sources.streams import check_streams

__all__ = ["FileCommit", "PlanSlices", "check_streams", "format_notes", "snapshot_files", "snapshot_generated"]
