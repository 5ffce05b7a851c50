-- Which table the rows of a task are in from now on. Belongs into the transaction of the switch.
UPDATE {schema}.unit SET identity = {identity}
FROM {schema}.slice, {schema}.run
WHERE unit.run_id = $1 AND unit.task = $2 AND slice.run_id = $1 AND slice.task = $2 AND slice.slice = 0 AND run.run_id = $1
