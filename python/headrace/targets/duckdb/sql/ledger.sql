-- The ledger: tables beside the data, in the same file, and a view of them. Only `run` is ever updated, and `task` in the
-- transaction that inserts it.
CREATE SCHEMA IF NOT EXISTS target.headrace;

CREATE TABLE IF NOT EXISTS target.headrace.run (
  run_id           VARCHAR NOT NULL PRIMARY KEY,
  package          VARCHAR NOT NULL,
  package_hash     VARCHAR NOT NULL,
  headrace_version VARCHAR NOT NULL,
  host             VARCHAR NOT NULL,
  process_id       BIGINT  NOT NULL,
  attempt          INTEGER NOT NULL, -- 1, and one more for each `headrace resume`
  status           VARCHAR NOT NULL, -- running, success, failed, cancelled; lost: died without saying so; abandoned: given up
  started_at       TIMESTAMP WITH TIME ZONE NOT NULL,
  finished_at      TIMESTAMP WITH TIME ZONE,
  error            VARCHAR,
  of_run           VARCHAR -- of a replay: the run whose rejects it loads
);
ALTER TABLE target.headrace.run ADD COLUMN IF NOT EXISTS of_run VARCHAR; -- as all such statements here: of a ledger made before

-- The slices of the plan, written before the first row. Bytes count from 0; the end is not part of the slice.
-- Slice 0 stands for the task itself, which may have no other: file is '', and it has no bytes.
CREATE TABLE IF NOT EXISTS target.headrace.slice (
  run_id      VARCHAR NOT NULL,
  task        VARCHAR NOT NULL,
  slice       INTEGER NOT NULL,
  "table"     VARCHAR NOT NULL,
  target      VARCHAR NOT NULL, -- create, append, replace
  file        VARCHAR NOT NULL,
  begin_byte  BIGINT  NOT NULL,
  end_byte    BIGINT  NOT NULL,
  file_bytes  BIGINT  NOT NULL,
  modified_ns BIGINT  NOT NULL,
  "schema"    VARCHAR, -- of the table
  PRIMARY KEY (run_id, task, slice)
);
ALTER TABLE target.headrace.slice ADD COLUMN IF NOT EXISTS "schema" VARCHAR;

-- One row per slice, inserted in the transaction that holds the slice's rows. Partition is '' without partitions.
-- Slice 0 stands for the task itself: all its rows are visible.
CREATE TABLE IF NOT EXISTS target.headrace.commit (
  run_id         VARCHAR NOT NULL,
  task           VARCHAR NOT NULL,
  slice          INTEGER NOT NULL,
  "partition"    VARCHAR NOT NULL,
  rows_loaded    BIGINT  NOT NULL,
  rows_rejected  BIGINT  NOT NULL,
  rows_skipped   BIGINT  NOT NULL, -- header and blank lines
  text_bytes     BIGINT  NOT NULL, -- of the slice, whether or not its file is compressed
  values_ignored BIGINT  NOT NULL, -- of rows that could be read: NULL or cut instead of what stands in the file
  committed_at   TIMESTAMP WITH TIME ZONE NOT NULL,
  text_hash      VARCHAR, -- xxh3-64 of the slice's bytes in its file, decompressed
  rows_filtered  BIGINT, -- rows that queries of the flow have left out; NULL: older than this column
  PRIMARY KEY (run_id, task, slice, "partition")
);
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS text_bytes BIGINT DEFAULT 0;
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS values_ignored BIGINT DEFAULT 0;
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS text_hash VARCHAR;
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS rows_filtered BIGINT;

-- Rejects that a replay has taken, by stretches of their numbers: a claim. It holds when the replay has any commit row of the
-- task, which is in the transaction of the rows.
CREATE TABLE IF NOT EXISTS target.headrace.replay (
  run_id       VARCHAR NOT NULL, -- the replay
  task         VARCHAR NOT NULL,
  of_run       VARCHAR NOT NULL, -- the run whose rejects they are
  first_number BIGINT  NOT NULL,
  last_number  BIGINT  NOT NULL,
  action       VARCHAR NOT NULL, -- load, drop
  file_hash    VARCHAR, -- of the file that was replayed; for people
  rows_added   BIGINT, -- rows of all of that file, beyond one for each number
  PRIMARY KEY (run_id, task, first_number)
);
ALTER TABLE target.headrace.replay ADD COLUMN IF NOT EXISTS rows_added BIGINT;

-- What `load: view` has made: one row per view. Whoever makes the view anew by hand changes its definition, and it is no
-- longer ours. Members: JSON, the tables in the order of the view, each with its rule.
CREATE TABLE IF NOT EXISTS target.headrace.divided_view (
  schema     VARCHAR NOT NULL,
  view       VARCHAR NOT NULL,
  definition VARCHAR NOT NULL, -- as DuckDB shows it
  strategy   VARCHAR NOT NULL, -- range, list, hash
  "column"   VARCHAR NOT NULL,
  members    VARCHAR NOT NULL
);

-- Tasks other than data flows that have committed: the row is in the transaction of what they did. `headrace resume` reads it.
CREATE TABLE IF NOT EXISTS target.headrace.task (
  run_id       VARCHAR NOT NULL,
  task         VARCHAR NOT NULL,
  result       VARCHAR, -- JSON: what the task had to tell; NULL: nothing
  committed_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (run_id, task)
);

-- Which files a run has loaded into which table: one row per file of a task. file_hash: xxh3-64 of a file of one slice; slices_hash:
-- SHA-256 of the hashes of all its slices, in their order, one text behind the other. Both are NULL where the hash of a slice is not
-- known. Whoever attaches the file under another name reads it there: DuckDB keeps no name of a file in a view.
CREATE OR REPLACE VIEW target.headrace.lineage AS
SELECT planned.run_id, run.package, run.package_hash, planned.task, planned."schema", planned."table", planned.file,
       max(planned.file_bytes) AS file_bytes,
       to_timestamp(max(nullif(planned.modified_ns, 0)) // 1000 / 1e6) AS modified,
       count(*) AS slices,
       sum(done.rows_loaded)::BIGINT AS rows_loaded,
       CASE WHEN count(*) = 1 THEN max(done.text_hash) END AS file_hash,
       CASE WHEN count(*) = count(done.text_hash) THEN sha256(string_agg(done.text_hash, '' ORDER BY planned.slice)) END AS slices_hash,
       max(done.committed_at) AS committed_at
FROM target.headrace.run
JOIN target.headrace.slice AS planned ON planned.run_id = run.run_id AND planned.slice > 0
JOIN target.headrace.commit AS done
  ON done.run_id = planned.run_id AND done.task = planned.task AND done.slice = planned.slice
GROUP BY planned.run_id, run.package, run.package_hash, planned.task, planned."schema", planned."table", planned.file;
