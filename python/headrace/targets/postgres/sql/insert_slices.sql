-- The slices, and slice 0 for the task as a whole, which may have no other.
WITH units AS (
  INSERT INTO {schema}.unit
  SELECT $1, $2, planned."partition", planned.staging, planned.takes, CASE WHEN planned.staging IS NULL THEN {identity} END
  FROM {schema}.run, (SELECT $3::text AS "schema", $4::text AS "table") AS slice,
       unnest($13::text[], $14::text[], $15::text[]) AS planned ("partition", staging, takes)
  WHERE run.run_id = $1
)
INSERT INTO {schema}.slice
SELECT $1, $2, planned.slice, $3, $4, $5, planned.units, planned.file,
       planned.begin_byte, planned.end_byte, planned.file_bytes, planned.modified_ns
FROM unnest($6::int[], $7::int[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
  AS planned (slice, units, file, begin_byte, end_byte, file_bytes, modified_ns)
UNION ALL SELECT $1, $2, 0, $3, $4, $5, 1, '', 0, 0, 0, 0
