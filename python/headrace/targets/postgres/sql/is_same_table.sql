-- Whether the table that a row of `slice` names is the one into which the rows of the task went. One that is gone holds none of them,
-- nor does another one that was made since; if the ledger itself was restored from a dump, nobody knows. A part of other statements.
(SELECT coalesce(pg_catalog.bool_and(CASE
     WHEN present.identity IS NULL THEN false
     WHEN unit.identity IS NULL OR pg_catalog.split_part(unit.identity, '/', 1) <> run.tableoid::text THEN true
     ELSE unit.identity = present.identity
   END), true)
   FROM {schema}.unit, (SELECT {identity} AS identity) AS present
   WHERE unit.run_id = slice.run_id AND unit.task = slice.task)
