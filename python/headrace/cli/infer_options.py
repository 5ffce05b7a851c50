"""Options that `infer` and `init` share."""

from __future__ import annotations

from headrace.errors import CommandLineError
from headrace.infer import Given
from headrace.model import Layout, parse_memory_size

# As people write them where the character itself is hard to type.
_NAMED_DELIMITERS = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
    "\\x01": "\x01",
    "\\x1f": "\x1f",
}


def sample_bytes_of(sample: str | None) -> int | None:
    """Bytes of `--sample`."""
    if sample is None:
        return None
    try:
        return parse_memory_size(sample)
    except ValueError as error:
        raise CommandLineError(
            f"{sample!r} is no size for --sample",
            expected="a number and MB, GB, MiB or GiB, as 64MB",
        ) from error


def given_of(delimiter: str | None, encoding: str | None, header: bool | None) -> Given:
    """What the command line says of the dialect."""
    if delimiter is not None:
        delimiter = _NAMED_DELIMITERS.get(delimiter, delimiter)
    settings = {"delimiter": delimiter, "encoding": encoding}
    given = {key: value for key, value in settings.items() if value is not None}
    checked = _checked(given)
    return Given(checked.delimiter if delimiter is not None else None, checked.encoding if encoding else None, header)


def _checked(given: dict[str, str]) -> Layout:
    from pydantic import ValidationError

    columns = [{"name": "column", "type": "string"}]
    try:
        return Layout.model_validate({"delimiter": ",", **given, "columns": columns})
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        option = f"--{details['loc'][0]}" if details["loc"] else "--delimiter"
        context = details.get("ctx", {})
        raise CommandLineError(
            f"wrong value for {option}",
            found=str(details["input"]),
            expected=context.get("expected"),
            hint=context.get("hint"),
        ) from error
