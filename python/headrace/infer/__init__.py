"""Layouts from files: the core tells facts, and pure functions here decide what they mean."""

from headrace.infer.checking import check_files
from headrace.infer.dialect import Choice, Given, choose_dialect
from headrace.infer.inference import InferOptions, infer_files
from headrace.infer.inferred import Doubt, Inferred, InferredColumn
from headrace.infer.layout_text import extreme_values, layout_text

__all__ = [
    "Choice",
    "Doubt",
    "Given",
    "InferOptions",
    "Inferred",
    "InferredColumn",
    "check_files",
    "choose_dialect",
    "extreme_values",
    "infer_files",
    "layout_text",
]
