-- How many sessions users can have at once, those of superusers left out.
SELECT pg_catalog.current_setting('max_connections')::integer
       - pg_catalog.current_setting('superuser_reserved_connections')::integer
       - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::integer
