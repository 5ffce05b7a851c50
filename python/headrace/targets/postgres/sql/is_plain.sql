-- Whether the rows of table $1 stand in it alone, and in no other table; and its pages.
SELECT c.relkind = 'r' AND NOT c.relispartition
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid OR i.inhrelid = c.oid),
       pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint
FROM pg_catalog.pg_class AS c WHERE c.oid = $1::oid
