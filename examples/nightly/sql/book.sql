INSERT INTO sales
SELECT arrived.file, receipt, sold_on, coalesce(customer.customer_key, -1), amount
FROM arrived LEFT JOIN customer ON customer.customer = arrived.customer
WHERE arrived.file = $sales_file;

INSERT INTO load_log VALUES ($sales_file, $rows_arrived, $rows_rejected);

DELETE FROM arrived WHERE file = $sales_file;
