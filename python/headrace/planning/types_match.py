"""Which source type may be stored in which target type without loss, as a table over the type kinds.

A pair is resolved once, before the first row. A lossy pair is refused, with the type to use instead. Rounding,
truncating and re-interpreting (a timestamp as one with time zone) are losses; widening is not.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.model import DataType

# Decimal digits that every value of an integer kind fits into.
INTEGER_DIGITS = {"int16": 5, "int32": 10, "int64": 19}
# Decimal digits that always fit: the largest n with 10^n - 1 <= maximum.
_SAFE_DIGITS = {"int16": 4, "int32": 9, "int64": 18}
_INTEGER_ORDER = ("int16", "int32", "int64")
TEXT_KINDS = frozenset({"string", "char", "varchar"})

Rule = Callable[[DataType, DataType], bool]


def _always(_source: DataType, _target: DataType) -> bool:
    return True


def _integer_in_decimal(source: DataType, target: DataType) -> bool:
    return _precision(target) - _scale(target) >= INTEGER_DIGITS[source.kind]


def _decimal_in_integer(source: DataType, target: DataType) -> bool:
    return _scale(source) == 0 and _precision(source) <= _SAFE_DIGITS[target.kind]


def _decimal_in_decimal(source: DataType, target: DataType) -> bool:
    whole_digits = _precision(source) - _scale(source)
    return _scale(target) >= _scale(source) and _precision(target) - _scale(target) >= whole_digits


def _text_fits(source: DataType, target: DataType) -> bool:
    return source.length is not None and target.length is not None and source.length <= target.length


def _precision(data_type: DataType) -> int:
    return data_type.precision or 0


def _scale(data_type: DataType) -> int:
    return data_type.scale or 0


def _rules() -> dict[tuple[str, str], Rule]:
    rules: dict[tuple[str, str], Rule] = {}
    for kind in ("bool", "date", "time", "timestamp", "timestamptz", "bytes", "uuid", "json", "float32", "float64"):
        rules[kind, kind] = _always
    for position, source in enumerate(_INTEGER_ORDER):
        for target in _INTEGER_ORDER[position:]:
            rules[source, target] = _always
        rules[source, "decimal"] = _integer_in_decimal
        rules["decimal", source] = _decimal_in_integer
    rules["decimal", "decimal"] = _decimal_in_decimal
    # Integers up to 2^24 (float32) and 2^53 (float64) are exact.
    for source, target in (("int16", "float32"), ("int16", "float64"), ("int32", "float64"), ("float32", "float64")):
        rules[source, target] = _always
    rules["date", "timestamp"] = _always  # midnight of that day
    for source in TEXT_KINDS:
        rules[source, "string"] = _always
    rules["json", "string"] = _always
    rules["char", "varchar"] = _text_fits
    rules["varchar", "varchar"] = _text_fits
    # char(n) compares without trailing blanks, so a varchar stored in it would lose the difference.
    rules["char", "char"] = _text_fits
    return rules


_RULES = _rules()


def is_lossless(source: DataType, target: DataType) -> bool:
    """True if every value of `source` can be stored in `target` unchanged."""
    rule = _RULES.get((source.kind, target.kind))
    return rule is not None and rule(source, target)


def narrowed(source: DataType, target: DataType) -> DataType | None:
    """The type to read the text as, so that every value which conforms to it can be stored in `target` unchanged and
    every other value is a reject; None if `target` differs from `source` by more than length or range.
    """
    kinds = source.kind, target.kind
    whole_digits = _precision(target) - _scale(target)
    if target.kind == "varchar" and source.kind in TEXT_KINDS:
        return DataType.parse(f"{'char' if source.kind == 'char' else 'varchar'}({target.length})")
    if kinds == ("char", "char"):
        return target
    if target.kind in _INTEGER_ORDER and (
        source.kind in _INTEGER_ORDER or (kinds[0] == "decimal" and not source.scale)
    ):
        return target
    if target.kind == "decimal" and source.kind in _INTEGER_ORDER:
        return DataType.parse(f"decimal({whole_digits},0)") if whole_digits > 0 else None
    if kinds == ("decimal", "decimal"):
        scale = min(_scale(source), _scale(target))
        return DataType.parse(f"decimal({whole_digits + scale},{scale})") if whole_digits + scale > 0 else None
    return None


def type_to_use(target: DataType) -> str:
    """The type to declare in the layout so that the column fits `target` exactly."""
    return str(target)
