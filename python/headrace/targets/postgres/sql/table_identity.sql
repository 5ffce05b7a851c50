-- Which table it is that a row of `slice` names: by the oids of the ledger's table `run` and of the table itself, which another one of
-- that name does not have; NULL if there is none. A part of other statements.
(SELECT pg_catalog.concat(run.tableoid, '/', named.oid)
   FROM pg_catalog.pg_class AS named JOIN pg_catalog.pg_namespace AS place ON place.oid = named.relnamespace
   WHERE place.nspname::text = slice."schema" AND named.relname::text = slice."table")
