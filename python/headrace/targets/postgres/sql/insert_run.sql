INSERT INTO {schema}.run
VALUES ($1, $2, $3, $4, $5, $6::bigint, 1, 'running', $7::timestamptz, NULL, NULL)
