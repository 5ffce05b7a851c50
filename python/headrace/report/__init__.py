"""Reports of runs: one HTML file, drawn from the run folder alone."""

from headrace.report.report import Report, write_report
from headrace.report.run_files import is_run_folder

__all__ = ["Report", "is_run_folder", "write_report"]
