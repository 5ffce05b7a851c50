"""Names what limits a load, from the numbers of docs/spec/metrics.md."""

from headrace.diagnose.history import History
from headrace.diagnose.limits import LIMITS, Limit
from headrace.diagnose.rule import judge, judge_streams
from headrace.diagnose.run import RunJudge
from headrace.diagnose.tail import SlowStream
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import Sample, Window, window

__all__ = [
    "LIMITS",
    "History",
    "Limit",
    "RunJudge",
    "Sample",
    "SlowStream",
    "Verdict",
    "Window",
    "judge",
    "judge_streams",
    "window",
]
