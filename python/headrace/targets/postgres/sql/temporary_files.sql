-- Bytes in temporary files of the sessions $1; NULL if this user may not look at them (pg_monitor may).
SELECT CASE WHEN pg_catalog.has_function_privilege('pg_catalog.pg_ls_tmpdir()', 'EXECUTE') THEN (
  SELECT coalesce(pg_catalog.sum(size), 0)::bigint FROM pg_catalog.pg_ls_tmpdir()
  WHERE pg_catalog.substring(name, '^pgsql_tmp(\d+)[.]') = ANY ($1::text[])
) END
