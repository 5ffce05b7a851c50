WITH units AS (
  INSERT INTO {schema}.unit
  SELECT $1, $2, planned."partition", planned.staging, planned.takes
  FROM unnest($13::text[], $14::text[], $15::text[]) AS planned ("partition", staging, takes)
), claims AS (
  INSERT INTO {schema}.replay
  SELECT $1, $2, $16, claimed.first_number, claimed.last_number, claimed.action, $17
  FROM unnest($18::bigint[], $19::bigint[], $20::text[]) AS claimed (first_number, last_number, action)
  ON CONFLICT DO NOTHING -- an attempt that went on has claimed the same
)
INSERT INTO {schema}.slice
SELECT $1, $2, planned.slice, $3, $4, $5, planned.units, planned.file,
       planned.begin_byte, planned.end_byte, planned.file_bytes, planned.modified_ns
FROM unnest($6::int[], $7::int[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
  AS planned (slice, units, file, begin_byte, end_byte, file_bytes, modified_ns)
