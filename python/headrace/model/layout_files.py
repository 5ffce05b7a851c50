"""Load the layouts of a package, inline ones and those in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.model.annotations import Slot
from headrace.model.layout import Layout, LayoutFile
from headrace.model.problems import ProblemCollector
from headrace.model.references import has_reference
from headrace.model.resolver import Resolver
from headrace.model.scope import Scope
from headrace.model.spec import PackageSpec
from headrace.model.suggest import quote, show_value
from headrace.model.validation import UNRESOLVED, place_name, validate
from headrace.model.yaml_reader import Document, DocumentPath, InvalidYamlError, read_document


class LayoutLoader:
    """Layouts by name; `documents` are the layout files read, in the order of the package."""

    def __init__(self, document: Document, folder: Path, resolver: Resolver, problems: ProblemCollector) -> None:
        self._document = document
        self._folder = folder
        self._resolver = resolver
        self._problems = problems
        self.documents: dict[str, Document] = {}

    def load(self, layouts: Mapping[str, Any], scope: Scope) -> dict[str, Layout | None]:
        """The layouts by name; None, with problems noted, for one that is wrong."""
        return {name: self._entry(name, entry, layouts, scope) for name, entry in layouts.items()}

    def _entry(self, name: str, entry: object, layouts: Mapping[str, Any], scope: Scope) -> Layout | None:
        path: DocumentPath = ("layouts", name)
        slot = Slot(PackageSpec).child("layouts", {"layouts": layouts}).child(name, layouts)
        resolved = self._resolver.resolve(entry, slot, path, scope)
        if not (isinstance(resolved, Mapping) and "file" in resolved):
            return validate(Layout, resolved, self._document, path, self._problems)
        if resolved["file"] is UNRESOLVED:
            return None
        reference = validate(LayoutFile, resolved, self._document, path, self._problems)
        return None if reference is None else self._from_file(reference.file, (*path, "file"))

    def _from_file(self, file: str, path: DocumentPath) -> Layout | None:
        document = self.documents.get(file)
        if document is None:
            document = self._read(file, path)
            if document is None:
                return None
            self.documents[file] = document
        if not isinstance(document.value, Mapping):
            self._problems.add(
                document, (), "the file is not a layout", found=show_value(document.value), expected="a YAML mapping"
            )
            return None
        referring = [(place, text) for place, text in _texts(document.value, ()) if has_reference(text)]
        for place, text in referring:
            self._problems.add(
                document,
                place,
                f"{place_name(place)} cannot hold a reference: a layout file does not see the package",
                found=quote(text),
                expected="a literal value",
                hint="Write the value itself, or the layout inside the package.",
            )
        if referring:
            return None
        return validate(Layout, document.value, document, (), self._problems)

    def _read(self, file: str, path: DocumentPath) -> Document | None:
        shown = str(Path(self._document.file).parent / file)
        try:
            return read_document(self._folder / file, shown)
        except InvalidYamlError as error:
            self._problems.extend(error.problems)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a path that cannot exist"
            self._problems.add(
                self._document,
                path,
                f"the layout file {shown} cannot be read",
                found=reason,
                expected="the path of a layout file, relative to the package file",
                hint="Check the path.",
            )
        return None


def _texts(value: object, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _texts(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*path, index))
