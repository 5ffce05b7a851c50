"""The rule on loads whose rows go to several connections: the busiest of them is compared with the streams."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.diagnose import History, Sample, Verdict, judge, judge_streams, window
from headrace.diagnose.window import SERVER_COUNTERS
from tests.unit.diagnose.lines import Load, several
from tests.unit.diagnose.test_rule import DUCKDB, FAR, PARSING, POSTGRES

LOCKED = replace(POSTGRES, found={"Lock:relation": 5}, blocked_by=[7])
IDLE = replace(POSTGRES, writer_waits=0.05, found={"client": 5})
ENGINE = replace(DUCKDB, engine_busy=0.9)
IDLE_ENGINE = replace(DUCKDB, engine_busy=0.1)
# Streams that wait for whoever takes their rows.
HELD_UP = Load(waits=0.7, encode=0.1)


def judged(load: Load, **places: Load) -> Verdict:
    verdict = judge(window(several(load, 3, **places), several(load, 8, **places)))
    assert verdict is not None
    return verdict


# What limits it, and which connection's part that is.
OF_SEVERAL = {
    "the second of two servers": (("locks", "late"), HELD_UP, {"first": IDLE, "late": LOCKED}),
    "the first of two servers": (("locks", "late"), HELD_UP, {"late": LOCKED, "other": IDLE}),
    "a server behind an engine": (("locks", "server"), HELD_UP, {"engine": IDLE_ENGINE, "server": LOCKED}),
    "an engine beside a server": (
        ("destination_cpu", "engine"),
        replace(HELD_UP, waits=0.9, encode=0, engine_cpu=1.7),
        {"server": IDLE, "engine": ENGINE},
    ),
    "one of two engines": (
        ("destination_cpu", "slow"),
        replace(HELD_UP, waits=0.9, encode=0, engine_cpu=1.7),
        {"fast": IDLE_ENGINE, "slow": ENGINE},
    ),
    "one of two engines that has put rows aside": (
        ("memory", "slow"),
        HELD_UP,
        {"fast": replace(IDLE_ENGINE, spilled=10**10), "slow": replace(ENGINE, spilled=10**9)},
    ),
    "a link beside an engine": (
        ("network", "far"),
        HELD_UP,
        {"engine": IDLE_ENGINE, "far": replace(FAR, found={"client": 5})},
    ),
    "a server that nobody could look into": (
        ("destination_cpu", "dark"),
        HELD_UP,
        {"engine": IDLE_ENGINE, "dark": replace(POSTGRES, found=None)},
    ),
    "an engine beside such a server": (
        ("destination_io", "engine"),
        replace(HELD_UP, cpus=8, engine_cpu=0.1),
        {"dark": replace(POSTGRES, found=None, writer_waits=0.5), "engine": ENGINE},
    ),
    "an engine beside a server of which nothing can be said": (
        ("destination_io", "engine"),
        replace(HELD_UP, streams=8, cpus=16, engine_cpu=0.1),
        {
            "dark": replace(POSTGRES, found=None, writers=1, writer_waits=0.9),
            "engine": replace(ENGINE, engine_busy=0.8),
        },
    ),
    "an engine that waits for its disk beside a server that computes": (
        ("destination_io", "engine"),
        replace(HELD_UP, cpus=8, engine_cpu=0.1, server_cpu=0.9),
        {"server": replace(POSTGRES, found={"cpu": 3, "client": 2}, server_cpu=0.9), "engine": ENGINE},
    ),
    "neither": (("parse", None), PARSING, {"engine": IDLE_ENGINE, "server": IDLE}),
    "neither of two that take turns": (("destination_cpu", None), HELD_UP, {"one": IDLE_ENGINE, "two": IDLE_ENGINE}),
    "the CPUs of all": (
        ("shared_cpu", None),
        replace(PARSING, waits=0.6, engine_cpu=0.3, server_cpu=0.9),
        {"engine": replace(ENGINE, engine_busy=0.5), "server": replace(POSTGRES, server_cpu=0.9)},
    ),
}


@pytest.mark.parametrize("case", OF_SEVERAL)
def test_limits_of_several_connections(case: str) -> None:
    expected, load, places = OF_SEVERAL[case]
    verdict = judged(load, **places)
    assert verdict.what == expected, verdict.sentence
    assert ("`" in verdict.sentence) == (expected[1] is not None)
    if expected[1] is not None:
        assert f", `{expected[1]}` was the busiest of them, and " in verdict.sentence
    assert "the destination " not in verdict.sentence


def test_of_several_the_sentence_and_the_evidence_are_those_of_the_busiest() -> None:
    verdict = judged(HELD_UP, engine=IDLE_ENGINE, server=LOCKED)
    assert verdict.sentence == (
        "the streams waited for the destinations 70% of their time, `server` was the busiest of them, "
        "and its sessions were found waiting for locks 100% of the time, blocked by process 7"
    )
    assert verdict.evidence["sessions_waiting_for_locks"] == 1 and "destination_busy" not in verdict.evidence
    assert verdict.to_dict()["connection"] == "server"
    alone = judge(window(LOCKED.at(3), LOCKED.at(8)))
    assert alone is not None and "connection" not in alone.to_dict()


def test_servers_whose_processes_have_the_same_numbers_are_told_apart() -> None:
    """As of two machines: writer 1 of each has process 101."""
    between = window(several(HELD_UP, 3, one=IDLE, two=LOCKED), several(HELD_UP, 8, one=IDLE, two=LOCKED))
    one, two = between.destinations
    assert [writer.wait_output for writer in one.writers] == pytest.approx([0.25] * 2)
    assert [writer.wait_output for writer in two.writers] == pytest.approx([4.0] * 2)


def test_of_engines_that_share_a_process_each_has_its_part_of_the_cpus() -> None:
    """Nobody can tell them apart: by how long each was busy."""
    load = replace(HELD_UP, cpus=8, engine_cpu=1.2)
    places = {"slow": ENGINE, "fast": replace(ENGINE, engine_busy=0.3)}
    shares = [
        own.engine.cpu_share
        for own in window(several(load, 3, **places), several(load, 8, **places)).destinations
        if own.engine
    ]
    assert shares == pytest.approx([0.75, 0.25])
    assert "computed on 1.0 CPUs" in judged(load, **places).sentence


def test_behind_the_busiest_destination_another_one_may_be_the_next_limit() -> None:
    verdict = judged(HELD_UP, engine=replace(ENGINE, engine_busy=0.8), server=LOCKED)
    assert (verdict.limit, verdict.next_limit) == ("locks", "destination_cpu")
    assert verdict.next_megabytes_per_second == pytest.approx(125)


def test_streams_alone_are_judged_by_the_busiest_too() -> None:
    places = {"engine": IDLE_ENGINE, "server": LOCKED}
    alone = judge_streams(window(several(HELD_UP, 3, **places), several(HELD_UP, 8, **places)))
    assert {verdict.what for verdict in alone.values()} == {("locks", "server")}


def test_lines_that_do_not_say_of_which_connection_they_are_are_those_of_one() -> None:
    """As in files of earlier versions: the destination line has a connection, and nothing else has."""

    def sample(t: float) -> Sample:
        own = LOCKED.at(t)
        return replace(own, destinations=[{"connection": "warehouse", **line} for line in own.destinations])

    assert judge(window(sample(3), sample(8))) == judge(window(LOCKED.at(3), LOCKED.at(8)))


def test_another_connection_with_the_same_limit_is_another_verdict() -> None:
    """Live, and of the votes at the end; seconds are told by limit."""
    history, shown = History(), []
    # The first is locked for 12 seconds, and the second one behind that.
    for t in range(24):
        sample = several(HELD_UP, t, one=IDLE, two=IDLE)
        first, second = ({"Lock:relation": 5 * s, "client": 5 * (t - s)} for s in (min(t, 12), max(0, t - 12)))
        lines = [
            {**line, "sessions": [{**session, "found": found} for session in line["sessions"]]}
            for line, found in zip(sample.destinations, (first, second), strict=True)
        ]
        verdict = history.add(sample.flow, sample.machine, lines)
        shown.append(None if verdict is None else verdict.what)
    assert list(dict.fromkeys(shown)) == [None, ("locks", "one"), ("locks", "two")]
    assert shown.index(("locks", "two")) >= 17, "a window of 5 s, of which more than half must be so, and 2 s more"
    told = history.to_dict()
    assert told is not None and told["limit"] == "locks"
    assert set(told["seconds_by_limit"]) == {"locks"} and told["seconds_by_limit"]["locks"] == pytest.approx(23)


def test_each_server_has_its_own_counters_from_its_first_look_on() -> None:
    """The session that asks one of them begins later than that of the other."""
    writing = replace(POSTGRES, found={"IO:DataFileExtend": 4, "cpu": 1}, checkpointer={}, checkpointing=0.9)
    history = History()
    for t in range(12):
        sample = several(HELD_UP, t, quiet=replace(IDLE, checkpoints=0.1), late=replace(writing, checkpoints=0.3))
        quiet, late = sample.destinations
        # It was at work before the load.
        late = {**late, "checkpoints_requested": late["checkpoints_requested"] + 300}
        nothing = dict.fromkeys(SERVER_COUNTERS)
        lines = [{**quiet, **(nothing if t < 1 else {})}, {**late, **(nothing if t < 3 else {})}]
        history.add(sample.flow, sample.machine, lines)
    whole = history.whole()
    assert whole is not None
    assert whole.what == ("checkpoint", "late"), whole.sentence
    assert "it made 3 checkpoints because" in whole.sentence, (
        "not the hundreds before, of which the other one knows nothing"
    )
