"""`--exact-keys`: different values are counted exactly, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import TargetError
from headrace.infer import InferOptions, infer_files, keys


def test_keys_that_do_not_fit_into_memory_are_counted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_MEMORY", "64MB")
    path = tmp_path / "keys.csv"
    rows = (f"{number * 7919 % 600_011:060};{number % 599_999:060}\n" for number in range(600_000))
    path.write_text("id;nearly\n" + "".join(rows))
    inferred = infer_files([path], InferOptions(exact_keys=True, streams=1))
    assert (inferred.keys, inferred.keys_are_proved) == ((("id",),), True)


def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_MEMORY", "1MB")
    path = tmp_path / "keys.csv"
    path.write_text("id;name\n" + "".join(f"{number:060};x\n" for number in range(200_000)))
    with pytest.raises(TargetError, match="keys cannot be proved") as raised:
        infer_files([path], InferOptions(exact_keys=True, streams=1))
    assert raised.value.found is not None and raised.value.found.startswith("Out of Memory Error")
