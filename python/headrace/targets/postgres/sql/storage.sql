-- What stands behind the columns of table $1 in CREATE TABLE: access method and storage parameters; and its tablespace.
SELECT pg_catalog.concat(
         CASE WHEN c.relkind = 'r' THEN pg_catalog.format(' USING %I', (SELECT amname FROM pg_catalog.pg_am WHERE oid = c.relam)) END,
         (SELECT pg_catalog.format(' WITH (%s)', pg_catalog.string_agg(pg_catalog.format('%I = %L', option_name, option_value), ', '))
          FROM pg_catalog.pg_options_to_table(c.reloptions) HAVING pg_catalog.count(*) > 0)) AS text,
       (SELECT spcname FROM pg_catalog.pg_tablespace WHERE oid = c.reltablespace) AS tablespace
FROM pg_catalog.pg_class AS c
WHERE c.oid = $1::oid
