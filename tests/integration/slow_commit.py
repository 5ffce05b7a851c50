"""Kills a load into PostgreSQL between two commits of its writers: those of some tables, or partitions, are there."""

from __future__ import annotations

import signal
import time

from tests.integration.postgres import PostgresProject

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
