"""Layouts from files: the core tells facts, and pure functions here decide what they mean."""

from headrace.infer.checking import check_files
from headrace.infer.comparing import Difference, compare
from headrace.infer.dialect import Choice, Given, choose_dialect
from headrace.infer.inference import InferOptions, infer_files
from headrace.infer.inferred import Doubt, Inferred, InferredColumn
from headrace.infer.layout_text import distinct_values, extreme_values, layout_text
from headrace.infer.package import InitOptions, InitResult, InitTable, init_package

__all__ = [
    "Choice",
    "Difference",
    "Doubt",
    "Given",
    "InferOptions",
    "Inferred",
    "InferredColumn",
    "InitOptions",
    "InitResult",
    "InitTable",
    "check_files",
    "choose_dialect",
    "compare",
    "distinct_values",
    "extreme_values",
    "infer_files",
    "init_package",
    "layout_text",
]
