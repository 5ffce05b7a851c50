-- What the quoted name $1 means in a FROM: schema, kind, whether others inherit from it, and its pages.
SELECT n.nspname, c.relkind, EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid),
       pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass($1)::oid
