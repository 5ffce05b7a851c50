-- The ledger: tables beside the data, in the same file. Only `run` is ever updated.
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
  values_ignored BIGINT  NOT NULL, -- of loaded rows: NULL or cut instead of what stands in the file
  committed_at   TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (run_id, task, slice, "partition")
);
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS text_bytes BIGINT DEFAULT 0;
ALTER TABLE target.headrace.commit ADD COLUMN IF NOT EXISTS values_ignored BIGINT DEFAULT 0;

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
