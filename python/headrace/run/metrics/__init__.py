"""What a run measures while it runs: `metrics.jsonl` of its folder, written and read. See docs/spec/metrics.md."""

from headrace.run.metrics.counters import growth
from headrace.run.metrics.file import MetricsFile
from headrace.run.metrics.places import WatchedPlace
from headrace.run.metrics.reading import Sample, read_samples
from headrace.run.metrics.recorder import MetricsRecorder

__all__ = ["MetricsFile", "MetricsRecorder", "Sample", "WatchedPlace", "growth", "read_samples"]
