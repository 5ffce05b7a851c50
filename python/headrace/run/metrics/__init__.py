"""What a run measures while it runs: `metrics.jsonl` of its folder, written and read. See docs/spec/metrics.md."""

from headrace.run.metrics.file import MetricsFile
from headrace.run.metrics.reading import Metrics, Sample, read_metrics, read_samples
from headrace.run.metrics.recorder import MetricsRecorder

__all__ = ["Metrics", "MetricsFile", "MetricsRecorder", "Sample", "read_metrics", "read_samples"]
