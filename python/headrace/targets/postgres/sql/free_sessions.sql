-- How many more sessions this user can have here now: by the limits of the server, the database and the user.
WITH taken AS (
  SELECT pg_catalog.count(*) AS by_all,
         pg_catalog.count(*) FILTER (WHERE datname = pg_catalog.current_database()) AS by_database,
         pg_catalog.count(*) FILTER (WHERE usename = session_user) AS by_user
  FROM pg_catalog.pg_stat_activity WHERE datid IS NOT NULL
)
SELECT least(
  pg_catalog.current_setting('max_connections')::integer
    - pg_catalog.current_setting('superuser_reserved_connections')::integer
    - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::integer - taken.by_all,
  (SELECT nullif(datconnlimit, -1) FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    - taken.by_database,
  (SELECT nullif(rolconnlimit, -1) FROM pg_catalog.pg_roles WHERE rolname = session_user) - taken.by_user
) FROM taken
