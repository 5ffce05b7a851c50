"""Programs: what they get, what becomes of what they write, and how they end."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CancelledError, ProcessError, ProcessRetryError, TaskTimeoutError
from headrace.model.spec_leaves import ProcessSpec
from headrace.run.leaves.base import LeafResult
from headrace.run.leaves.process import ProcessLeaf
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import RUN_ID, Killed, Scene
from tests.unit.run.leaves.processes import lives, wait_until


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def run(scene: Scene, *command: str, **settings: Any) -> LeafResult:
    return ProcessLeaf().run(ProcessSpec(command=list(command), **settings), scene.context())


def shell(scene: Scene, script: str, **settings: Any) -> LeafResult:
    return run(scene, "/bin/sh", "-c", script, **settings)


def log(scene: Scene, stream: str) -> str:
    return (scene.run_folder / "processes" / f"loop[1].work.{stream}").read_text(encoding="utf-8")


def test_output_goes_into_the_variable(scene: Scene) -> None:
    result = shell(scene, "echo one; echo 'zwölf'; echo", output="text")
    assert result.outputs == {"text": "one\nzwölf"}
    assert result.details == {"exit_code": 0, "logs": []}
    assert not scene.run_folder.exists()


def test_output_is_kept_in_the_run_folder(scene: Scene) -> None:
    result = shell(scene, "echo out; printf err >&2")
    assert (log(scene, "stdout"), log(scene, "stderr")) == ("out\n", "err")
    assert len(result.details["logs"]) == 2
    assert not result.outputs


def test_no_shell_reads_arguments(scene: Scene) -> None:
    assert run(scene, "printf", "%s|", "a b", "$HOME", "*", "", output="text").outputs["text"] == "a b|$HOME|*||"


def test_input_environment_folder(scene: Scene) -> None:
    (scene.folder / "below").mkdir()
    result = shell(
        scene,
        'cat; echo "$ADDED $HEADRACE_RUN_ID $HEADRACE_TASK"; pwd; env | grep -c LC_CTYPE',
        input="größer\n",
        environment={"ADDED": "x=y", "PATH": os.environ["PATH"]},
        folder="below",
        output="text",
        exit_codes=[0, 1],
    )
    known = "1" if "LC_CTYPE" in os.environ else "0"
    expected = ["größer", f"x=y {RUN_ID} loop[1].work", str(scene.folder / "below"), known]
    assert str(result.outputs["text"]).splitlines() == expected


def test_input_that_nobody_reads(scene: Scene) -> None:
    assert shell(scene, "exit 0", input="x" * 5_000_000).details["exit_code"] == 0


def test_input_that_comes_back(scene: Scene) -> None:
    text = "0123456789" * 99_999
    assert run(scene, "cat", input=text, output="text").outputs["text"] == text


def test_without_input_there_is_nothing_to_read(scene: Scene) -> None:
    assert shell(scene, "read line; echo $?", output="text").outputs["text"] == "1"


def test_signals_are_as_a_shell_leaves_them(scene: Scene) -> None:
    names = shell(scene, "grep -E 'Sig(Blk|Ign)' /proc/self/status", output="text").outputs["text"]
    # What whoever has started the tests ignores (`nohup`, a job in the background of a script) stays so, as in a shell.
    status = Path("/proc/self/status").read_text()
    ignored = {name: int(mask, 16) for name, mask in re.findall(r"^(SigIgn|SigBlk):\s*(\w+)", status, re.MULTILINE)}
    # Python itself ignores these two.
    ignored["SigIgn"] &= ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)
    # 32 and 33 are the C library's own: nobody can set them, so they are as whoever has started the tests had them.
    own = 0b11 << 31
    found = {line.split(":")[0]: int(line.split()[1], 16) & ~own for line in str(names).splitlines()}
    assert found == {"SigBlk": 0, "SigIgn": ignored["SigIgn"] & ~own}


def test_only_the_standard_streams_are_open(scene: Scene) -> None:
    assert shell(scene, "ls /proc/self/fd | wc -l", output="text").outputs["text"] == "4"  # ls has the folder open


def test_a_program_has_a_session_of_its_own(scene: Scene) -> None:
    text = shell(scene, "cut -d' ' -f1,5,6 /proc/$$/stat", output="text").outputs["text"]
    assert len(set(str(text).split())) == 1


def test_exit_codes(scene: Scene) -> None:
    assert shell(scene, "exit 3", exit_codes=[0, 3]).details["exit_code"] == 3
    with pytest.raises(ProcessRetryError):
        shell(scene, "exit 75", retry_exit_codes=[75])
    with pytest.raises(ProcessRetryError):
        shell(scene, "kill -9 $$", retry_exit_codes=[137])
    with pytest.raises(ProcessError) as caught:
        shell(scene, "exit 75", retry_exit_codes=[74])
    assert not caught.value.retryable


FAILURES: dict[str, Callable[[Scene], object]] = {
    "exit_code": lambda scene: shell(scene, "exit 3"),
    "exit_code_of_several": lambda scene: shell(scene, "exit 3", exit_codes=[0, 2]),
    "last_lines": lambda scene: shell(scene, "for i in $(seq 30); do echo line $i >&2; done; exit 1"),
    "controls": lambda scene: shell(
        scene, r"printf '\033[31mred\033[0m \007bell\033]0;title\007\n10%%\r50%%\rdone\n\n\tend' >&2; exit 1"
    ),
    "endless_line": lambda scene: shell(scene, "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 1"),
    "not_utf8_errors": lambda scene: shell(scene, r"printf 'caf\351\n' >&2; exit 1"),
    "signal": lambda scene: shell(scene, "kill -SEGV $$"),
    "not_found": lambda scene: run(scene, "no-such-program"),
    "no_such_file": lambda scene: run(scene, "./no-such-program"),
    "no_right": lambda scene: run(scene, "./package.yaml"),
    "is_folder": lambda scene: run(scene, "./run", folder="."),
    "no_interpreter": lambda scene: run(scene, "./script"),
    "no_program": lambda scene: run(scene, "./text"),
    "too_long": lambda scene: run(scene, "echo", "x" * 3_000_000),
    "no_folder": lambda scene: run(scene, "true", folder="missing"),
    "folder_is_file": lambda scene: run(scene, "true", folder="package.yaml"),
    "too_much_output": lambda scene: run(scene, "yes", output="text"),
    "output_not_utf8": lambda scene: shell(scene, r"printf 'ab\377'", output="text"),
    "secret": lambda scene: run(scene, "login", "--password=hunter22"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(scene: Scene, name: str) -> None:
    scene.secrets = frozenset({"hunter22"})
    scene.context()
    scene.run_folder.mkdir()
    for file, text in (("script", "#!/no/such/interpreter\n"), ("text", "no program")):
        (scene.folder / file).write_text(text)
        (scene.folder / file).chmod(0o755)
    with pytest.raises(ProcessError) as caught:
        FAILURES[name](scene)
    assert_snapshot(f"process_{name}", scene.shown(caught.value))


def test_secrets_are_hidden_however_they_are_cut(scene: Scene) -> None:
    secret = "-----BEGIN\nhunter22\nzwölf-----"
    scene.secrets = frozenset({secret, "geheim99"})
    script = (
        "import os, time\n"
        "secret = os.environ['SECRET'].encode()\n"
        "for stream in (1, 2):\n"
        "    for text in (b'before\\n', secret[:8], secret[8:15], secret[15:],"
        "        b'\\nbehind geheim' + b'99 ', b'x' * 70000):\n"
        "        os.write(stream, text); time.sleep(0.02)\n"
        "    for text in (b'gehe', b'im99\\n', b'last line\\n' * 100, b'gehe'):\n"
        "        os.write(stream, text); time.sleep(0.02)\n"
        "raise SystemExit(1)\n"
    )
    with pytest.raises(ProcessError, match="has failed"):
        run(scene, sys.executable, "-c", script, environment={"SECRET": secret})
    for stream in ("stdout", "stderr"):
        text = log(scene, stream)
        assert not any(part in text for part in ("hunter", "geheim", "BEGIN"))
        assert text == f"before\n***\nbehind *** {'x' * 70000}***\n" + "last line\n" * 100 + "gehe"


def test_a_log_that_cannot_be_written_is_said_once(scene: Scene) -> None:
    scene.context()
    scene.run_folder.write_text("a file")
    shell(scene, "echo a; echo b; sleep 0.1; echo c")
    assert len(scene.warnings) == 1 and "cannot be kept" in scene.warnings[0]


def test_a_second_attempt_goes_on_in_the_same_files(scene: Scene) -> None:
    shell(scene, "echo first")
    shell(scene, "echo second")
    assert log(scene, "stdout") == "first\nsecond\n"


def cancel_behind(scene: Scene, file: str, stop: Callable[[], None]) -> threading.Thread:
    def work() -> None:
        wait_until((scene.folder / file).exists)
        stop()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_cancelling_asks_first(scene: Scene) -> None:
    thread = cancel_behind(scene, "began", scene.cancellation.set)
    with pytest.raises(CancelledError, match=r"task loop\[1\].work was cancelled"):
        shell(scene, "trap 'echo ended > asked; exit 0' TERM; touch began; while :; do sleep 0.05; done")
    thread.join()
    assert (scene.folder / "asked").exists()


def test_a_time_out_is_a_failure(scene: Scene) -> None:
    thread = cancel_behind(scene, "began", lambda: scene.cancellation.time_out(2.5))
    started = time.monotonic()
    with pytest.raises(TaskTimeoutError):
        shell(scene, "touch began; sleep 3600")
    thread.join()
    assert time.monotonic() - started < HANG_SECONDS


def test_who_does_not_listen_is_killed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.run.leaves.programs.ASKED_SECONDS", 0.3)
    thread = cancel_behind(scene, "began", scene.cancellation.set)
    script = (
        "trap '' TERM; (trap '' TERM; echo $$ > below; sleep 60) & echo $! > child; touch began; sleep 60; sleep 60"
    )
    with pytest.raises(CancelledError):
        shell(scene, script)
    thread.join()
    wait_until(lambda: not lives(int((scene.folder / "child").read_text())))


def test_cancelled_before_it_begins(scene: Scene) -> None:
    scene.cancellation.set()
    with pytest.raises(CancelledError):
        shell(scene, "touch began")
    assert not (scene.folder / "began").exists()


def test_what_is_left_running_is_ended(scene: Scene) -> None:
    started = time.monotonic()
    result = shell(scene, "sleep 60 & echo $! > child; echo done", output="text")
    assert result.outputs["text"] == "done"
    assert time.monotonic() - started < HANG_SECONDS
    assert not lives(int((scene.folder / "child").read_text()))
    assert scene.warnings == [
        "what /bin/sh has left running was ended; a server that is to stay has to leave the session (`setsid`)"
    ]


def test_what_ends_soon_by_itself_may(scene: Scene) -> None:
    result = shell(scene, "(sleep 0.2; echo late) & echo soon", output="text")
    assert result.outputs["text"] == "soon\nlate"
    assert not scene.warnings


def test_a_server_may_stay_and_hold_the_pipes(scene: Scene) -> None:
    started = time.monotonic()
    result = shell(scene, "setsid sleep 30 & echo $! > child; echo done", output="text")
    assert time.monotonic() - started < HANG_SECONDS
    child = int((scene.folder / "child").read_text())
    try:
        assert result.outputs["text"] == "done"
        assert lives(child)
    finally:
        os.kill(child, 9)


def test_what_is_remembered(scene: Scene) -> None:
    shell(scene, "echo $$ > process")
    (note,) = scene.notes.made
    assert note["process"] == int((scene.folder / "process").read_text())
    assert isinstance(note["started"], int) and note["boot"]


def test_nothing_begins_before_it_is_remembered(scene: Scene) -> None:
    scene.notes.stop_behind = 1
    with pytest.raises(Killed):
        shell(scene, "touch began")
    time.sleep(0.1)
    assert not (scene.folder / "began").exists()


def test_many_at_once(scene: Scene) -> None:
    context = scene.context()
    results: list[object] = []

    def work(number: int) -> None:
        spec = ProcessSpec(command=["sh", "-c", f"sleep 0.1; echo {number}"], output="text")
        results.append(ProcessLeaf().run(spec, context).outputs["text"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == [str(number) for number in range(8)]


def test_description() -> None:
    assert ProcessLeaf().describe(ProcessSpec(command=["a b", "c"])) == ["runs 'a b' c"]
