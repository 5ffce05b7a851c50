SELECT
    (SELECT max(rows_in_file) FROM announced WHERE file = $sales_file) AS announced,
    (SELECT count(*) FROM arrived WHERE file = $sales_file) AS arrived,
    (SELECT count(*) FROM bad_sales WHERE run_id = $run AND file LIKE '%' || $sales_file) AS rejected
