"""Packages run code only if their user says so, where nobody else can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.errors import TrustError
from headrace.model import BoundPackage, load_package
from headrace.run.trust import TrustedTask, check_trust, config_path, needs_trust
from tests.snapshots import assert_snapshot

CHILD = """\
headrace: 1
package: child
tasks:
  call: {python: {function: "a:b"}}
"""
PACKAGE = """\
headrace: 1
package: nightly
tasks:
  first: {set: {}}
  loop:
    foreach: {item: x, in: [1], tasks: {inner: {process: {command: ["true"]}}}}
    after: first
  part: {package: {file: parts/child.yaml}}
on:
  error:
    tasks: {tell: {process: {command: ["mail"]}}}
"""
HARMLESS = "headrace: 1\npackage: harmless\ntasks: {first: {set: {}}}\n"


class Home:
    """A user's home with a package and a config."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.work = folder / "work"
        self.path = self.work / "nightly.yaml"
        (self.work / "parts").mkdir(parents=True)
        self.path.write_text(PACKAGE)
        (self.work / "parts" / "child.yaml").write_text(CHILD)
        self.config = folder / ".config" / "headrace" / "config.yaml"
        self.config.parent.mkdir(parents=True)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.environ = {"HOME": str(folder)}

    def package(self, path: Path | None = None) -> BoundPackage:
        return load_package(path or self.path)

    def write(self, text: str) -> None:
        self.config.write_text(text)
        self.config.chmod(0o644)

    def check(self, *, trusted: bool = False, path: Path | None = None) -> None:
        check_trust(self.package(path), trusted, self.environ)

    def refusal(self, path: Path | None = None) -> str:
        with pytest.raises(TrustError) as caught:
            self.check(path=path)
        return caught.value.render().replace(str(self.folder), "HOME").replace(f"user {os.geteuid() + 1}", "user N")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_what_needs_trust(home: Home) -> None:
    file, child = str(home.path), str(home.work / "parts" / "child.yaml")
    assert needs_trust(home.package()) == [
        TrustedTask("loop.inner", "process", file, 6),
        TrustedTask("part.call", "python", child, 4),
        TrustedTask("on_error.tell", "process", file, 11),
    ]


def test_the_command_line_trusts(home: Home) -> None:
    home.check(trusted=True)


def test_a_harmless_package_needs_nothing(home: Home) -> None:
    home.path.write_text(HARMLESS)
    home.write("not: [even, valid")
    home.check()


@pytest.mark.parametrize(
    "entry", ["{work}/nightly.yaml", "{work}", "{work}/", "{home}", "{tilde}", "{tilde}/nightly.yaml"]
)
def test_the_config_trusts(home: Home, entry: str) -> None:
    tilde = f"~/{home.work.name}"
    home.write(f"trusted:\n  - /somewhere/else\n  - {entry.format(work=home.work, home=home.folder, tilde=tilde)}\n")
    home.check()


@pytest.mark.parametrize("entry", ["{work}/night", "{home}/wor", "{home}/work2", "/x", "{work}/parts"])
def test_the_config_trusts_others(home: Home, entry: str) -> None:
    home.write(f"trusted: [{entry.format(work=home.work, home=home.folder)}]\n")
    assert "is not trusted" in home.refusal()


def test_links_are_followed(home: Home) -> None:
    (home.folder / "link").symlink_to(home.work)
    (home.folder / "link.yaml").symlink_to(home.path)
    home.write(f"trusted: [{home.folder}/link]\n")
    home.check()
    home.write(f"trusted: [{home.folder}/link.yaml]\n")
    home.check()
    home.write(f"trusted: [{home.path}]\n")
    home.check(path=home.folder / "link" / "nightly.yaml")


def test_a_config_that_is_a_link(home: Home) -> None:
    real = home.folder / "dotfiles" / "config.yaml"
    real.parent.mkdir()
    real.write_text(f"trusted: [{home.work}]\n")
    real.chmod(0o644)
    real.parent.chmod(0o755)
    home.config.symlink_to(real)
    home.check()
    real.parent.chmod(0o775)
    assert "the folder of the config can be changed by others" in home.refusal()


def test_where_the_config_is(tmp_path: Path) -> None:
    assert config_path({"HOME": "/h"}) == Path("/h/.config/headrace/config.yaml")
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}) == Path("/c/headrace/config.yaml")
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "c"}) == Path("/h/.config/headrace/config.yaml")
    assert config_path({}) is None


def test_without_a_home(home: Home) -> None:
    home.environ = {}
    assert_snapshot("trust_without_a_home", home.refusal())


def test_many_tasks(home: Home) -> None:
    tasks = "\n".join(f"  t{number}: {{process: {{command: [a]}}}}" for number in range(12))
    home.path.write_text(f"headrace: 1\npackage: many\ntasks:\n{tasks}\n")
    assert_snapshot("trust_many_tasks", home.refusal())


CONFIGS = {
    "none": None,
    "empty": "",
    "no_mapping": "- a\n",
    "unknown_key": "trust: [/a]\n",
    "no_list": "trusted: /a\n",
    "relative": "trusted: [/a, b/c]\n",
    "other_home": "trusted: ['~user/x']\n",
    "duplicate": "trusted: []\ntrusted: []\n",
    "unclosed": "trusted: [a\n",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_that_do_not_help(home: Home, name: str) -> None:
    text = CONFIGS[name]
    if text is not None:
        home.write(text)
    assert_snapshot(f"trust_config_{name}", home.refusal())


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("config", 0o664),
        ("config", 0o646),
        ("config_folder", 0o777),
        ("package", 0o666),
        ("package_folder", 0o775),
        ("child", 0o664),
    ],
)
def test_what_others_could_change(home: Home, place: str, mode: int) -> None:
    home.write(f"trusted: [{home.folder}]\n")
    home.check()
    places = {"config": home.config, "package": home.path, "child": home.work / "parts" / "child.yaml"}
    (places[place.removesuffix("_folder")].parent if "folder" in place else places[place]).chmod(mode)
    assert_snapshot(f"trust_{place}_{mode:o}", home.refusal())
    home.check(trusted=True)


def test_what_belongs_to_others(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(f"trusted: [{home.folder}]\n")
    monkeypatch.setattr("headrace.run.trust.os.geteuid", lambda: 987_654)
    if home.config.stat().st_uid == 0:
        for path in (home.config, home.config.parent):
            os.chown(path, 4321, 4321)
    shown = home.refusal().replace(f"user {home.config.stat().st_uid}", "user N")
    assert_snapshot("trust_config_of_others", shown)


def test_a_config_that_cannot_be_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.config.mkdir()
    assert_snapshot("trust_config_is_a_folder", home.refusal())


@pytest.mark.parametrize(
    ("setting", "is_needed"), [("", False), (", outside: false", False), (", outside: true", True)]
)
def test_a_file_task_that_may_leave_its_folder_needs_trust(home: Home, setting: str, is_needed: bool) -> None:
    text = f'headrace: 1\npackage: tidy\ntasks: {{tidy: {{file: {{delete: "x"{setting}}}}}}}\n'
    home.path.write_text(text)
    assert bool(needs_trust(home.package())) is is_needed
    if is_needed:
        assert "tidy (file)" in home.refusal()
    else:
        home.check()
    home.check(trusted=True)
