-- The partitions of a task as they were planned: partition, hidden table, keys.
SELECT "partition", staging, takes FROM {schema}.unit WHERE run_id = $1 AND task = $2
