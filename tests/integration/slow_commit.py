"""Kills loads into PostgreSQL when some of their tables or partitions are committed out of sight, and others not."""

from __future__ import annotations

import signal
import time

from tests.integration.postgres import PostgresProject
from tests.patience import HANG_SECONDS

_SLEEPS = """
CREATE TABLE public.awake (yes BOOLEAN);
CREATE FUNCTION public.sleep_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.slice > 0 AND {condition} AND NOT EXISTS (SELECT FROM public.awake) THEN
    PERFORM pg_sleep(600);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER sleep_first BEFORE INSERT ON headrace.commit FOR EACH ROW EXECUTE FUNCTION public.sleep_first()
"""
_COMMITTED = (
    "SELECT count(*) FROM headrace.commit WHERE slice > 0 "
    "AND run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
)
_SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def kill_at_the_switch(project: PostgresProject, table: str) -> None:
    """Starts a run and kills it when all is committed out of sight: a lock of the table keeps the switch waiting."""
    with (
        project.target.session(f"BEGIN; LOCK TABLE {table} IN SHARE MODE"),
        project.started(project.arguments("--streams", "4")) as running,
    ):
        deadline = time.monotonic() + HANG_SECONDS
        while project.query(_WAITING) == [("0",)]:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
            time.sleep(0.02)
        running.signal(signal.SIGKILL)
        running.wait()


def uncommit(project: PostgresProject, task: str, partition: str) -> None:
    """As if the unit of a partition had not come to its commit: all units of a flow commit in the same moment."""
    last = "run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
    where = f"WHERE {last} AND task = '{task}' AND \"partition\" = '{partition}'"
    ((staging,),) = project.query(f"SELECT staging FROM headrace.unit {where}")
    project.execute(f"DELETE FROM headrace.commit {where}", f'DROP TABLE headrace."{staging}"')


def kill_between_commits(project: PostgresProject, condition: str, *arguments: str) -> int:
    """Starts a run and kills it when a writer whose commit row meets the condition is about to commit, and nobody else
    is any more. How many units have committed. There must have been a run before.
    """
    project.execute(_SLEEPS.format(condition=condition))
    with project.started(project.arguments(*arguments)) as running:
        deadline, before = time.monotonic() + 60, "-1"
        while True:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
            (committed,), (sleeping,) = project.query(_COMMITTED)[0], project.query(_SLEEPING)[0]
            if sleeping != "0" and committed == before:
                break
            before = str(committed)
            time.sleep(0.2)
        running.signal(signal.SIGKILL)
        running.wait()
    project.execute("INSERT INTO public.awake VALUES (true)")
    return int(before)
