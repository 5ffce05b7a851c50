-- The ledger: six tables beside the data, and a view of them. Only `run` is ever updated, `task` in the transaction that inserts it,
-- and `unit` in that of the switch; commit rows go when their rows go.
CREATE TABLE IF NOT EXISTS {schema}.run (
  run_id           text        NOT NULL PRIMARY KEY,
  package          text        NOT NULL,
  package_hash     text        NOT NULL,
  headrace_version text        NOT NULL,
  host             text        NOT NULL,
  process_id       bigint      NOT NULL,
  attempt          integer     NOT NULL, -- from 1; `resume` raises it, which shuts out the sessions of the one before
  status           text        NOT NULL, -- running, success, failed, cancelled; lost: died without saying so; abandoned: given up
  started_at       timestamptz NOT NULL,
  finished_at      timestamptz,
  error            text,
  of_run           text -- of a replay: the run whose rejects it loads
);
ALTER TABLE {schema}.run ADD COLUMN IF NOT EXISTS of_run text; -- as all such statements here: of a ledger made before

-- The slices of the plan, written before the first row. Bytes count from 0; the end is not part of the slice.
-- Slice 0 stands for the task itself, which may have no other: file is '', and it has no bytes.
CREATE TABLE IF NOT EXISTS {schema}.slice (
  run_id      text    NOT NULL,
  task        text    NOT NULL,
  slice       integer NOT NULL,
  "schema"    text    NOT NULL,
  "table"     text    NOT NULL,
  target      text    NOT NULL, -- create, append, replace, reload: some partitions are replaced
  units       integer NOT NULL, -- commit rows that complete it: one of each partition into which its rows may go
  file        text    NOT NULL,
  begin_byte  bigint  NOT NULL,
  end_byte    bigint  NOT NULL,
  file_bytes  bigint  NOT NULL,
  modified_ns bigint  NOT NULL,
  PRIMARY KEY (run_id, task, slice)
);

-- The partitions into which the rows of a task go, each by units of its own: '' without partitions, `strays` for rows that
-- are not of their slice's partition, `*` for all where the server finds the partition of a row.
-- staging: the hidden table; NULL: straight into the table. takes: the keys of the partition, as JSON. identity: which table the rows
-- went into, as table_identity.sql has it; NULL before the switch, and in rows that are older than this column.
CREATE TABLE IF NOT EXISTS {schema}.unit (
  run_id      text NOT NULL,
  task        text NOT NULL,
  "partition" text NOT NULL,
  staging     text,
  takes       text,
  identity    text,
  PRIMARY KEY (run_id, task, "partition")
);
ALTER TABLE {schema}.unit ADD COLUMN IF NOT EXISTS identity text;

-- One row per slice and partition, inserted in the transaction that holds these rows. What was rejected, filtered, skipped and ignored of a slice, and
-- the length and the hash of its text, is in one of its rows, and 0 or NULL in the others.
-- Slice 0: the task is complete, its tables are switched in.
CREATE TABLE IF NOT EXISTS {schema}.commit (
  run_id         text        NOT NULL,
  task           text        NOT NULL,
  slice          integer     NOT NULL,
  "partition"    text        NOT NULL,
  rows_loaded    bigint      NOT NULL,
  rows_rejected  bigint      NOT NULL,
  rows_skipped   bigint      NOT NULL, -- header and blank lines
  text_bytes     bigint      NOT NULL, -- of the slice, whether or not its file is compressed
  values_ignored bigint      NOT NULL, -- of rows that could be read: NULL or cut instead of what stands in the file
  committed_at   timestamptz NOT NULL,
  text_hash      text, -- xxh3-64 of the slice's bytes in its file, decompressed
  rows_filtered  bigint, -- rows that queries of the flow have left out; NULL: older than this column
  PRIMARY KEY (run_id, task, slice, "partition")
);
ALTER TABLE {schema}.commit ADD COLUMN IF NOT EXISTS text_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.commit ADD COLUMN IF NOT EXISTS values_ignored bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.commit ADD COLUMN IF NOT EXISTS text_hash text;
ALTER TABLE {schema}.commit ADD COLUMN IF NOT EXISTS rows_filtered bigint;

-- Rejects that a replay has taken, by stretches of their numbers: a claim. It holds when the replay has any commit row of the
-- task, which is in the transaction of the rows.
CREATE TABLE IF NOT EXISTS {schema}.replay (
  run_id       text   NOT NULL, -- the replay
  task         text   NOT NULL,
  of_run       text   NOT NULL, -- the run whose rejects they are
  first_number bigint NOT NULL,
  last_number  bigint NOT NULL,
  action       text   NOT NULL, -- load, drop
  file_hash    text, -- of the file that was replayed; for people
  rows_added   bigint, -- rows of all of that file, beyond one for each number
  PRIMARY KEY (run_id, task, first_number)
);
ALTER TABLE {schema}.replay ADD COLUMN IF NOT EXISTS rows_added bigint;

-- Tasks other than data flows that have committed: the row is in the transaction of what they did. `headrace resume` reads it.
CREATE TABLE IF NOT EXISTS {schema}.task (
  run_id       text        NOT NULL,
  task         text        NOT NULL,
  result       text, -- JSON: what the task had to tell; NULL: nothing
  committed_at timestamptz NOT NULL,
  PRIMARY KEY (run_id, task)
);

-- Which files a run has loaded into which table: one row per file of a task, once rows of it are visible. file_hash: xxh3-64 of a
-- file of one slice; slices_hash: SHA-256 of the hashes of all its slices, in their order, one text behind the other. Both are NULL
-- where the hash of a slice is not known. committed_at: from when on all rows of the task were visible; NULL if it was broken off
-- while it appended.
CREATE OR REPLACE VIEW {schema}.lineage AS
SELECT planned.run_id, run.package, run.package_hash, planned.task, planned."schema", planned."table", planned.file,
       pg_catalog.max(planned.file_bytes) AS file_bytes,
       timestamptz 'epoch' + pg_catalog.max(nullif(planned.modified_ns, 0)) / 1000 * interval '1 microsecond' AS modified,
       pg_catalog.count(*) AS slices,
       pg_catalog.sum(done.rows_loaded)::bigint AS rows_loaded,
       CASE WHEN pg_catalog.count(*) = 1 THEN pg_catalog.max(done.text_hash) END AS file_hash,
       CASE WHEN pg_catalog.count(*) = pg_catalog.count(done.text_hash) THEN
         pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
           pg_catalog.string_agg(done.text_hash, '' ORDER BY planned.slice), 'UTF8')), 'hex')
       END AS slices_hash,
       switched.committed_at
FROM {schema}.run
JOIN {schema}.slice AS planned ON planned.run_id = run.run_id AND planned.slice > 0
LEFT JOIN (
  SELECT run_id, task, slice, pg_catalog.sum(rows_loaded) AS rows_loaded, pg_catalog.max(text_hash) AS text_hash
  FROM {schema}.commit GROUP BY run_id, task, slice
) AS done ON done.run_id = planned.run_id AND done.task = planned.task AND done.slice = planned.slice
LEFT JOIN {schema}.commit AS switched
  ON switched.run_id = planned.run_id AND switched.task = planned.task AND switched.slice = 0
-- Rows of hidden tables are nobody's before the switch.
WHERE switched.slice = 0 OR EXISTS (
  SELECT FROM {schema}.unit WHERE unit.run_id = planned.run_id AND unit.task = planned.task AND unit.staging IS NULL
)
GROUP BY planned.run_id, run.package, run.package_hash, planned.task, planned."schema", planned."table", planned.file,
         switched.committed_at
HAVING pg_catalog.count(done.rows_loaded) > 0;
