INSERT INTO {schema}.slice
SELECT $1, $2, planned.slice, $3, $4, planned.staging, planned.file,
       planned.begin_byte, planned.end_byte, planned.file_bytes, planned.modified_ns
FROM unnest($5::int[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
  AS planned (slice, staging, file, begin_byte, end_byte, file_bytes, modified_ns)
