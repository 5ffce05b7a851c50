-- Statements that DuckDB and PostgreSQL understand alike. Customer -1 stands for those that nobody knows.
CREATE TABLE IF NOT EXISTS customer (customer_key BIGINT PRIMARY KEY, customer VARCHAR(12) NOT NULL, name VARCHAR(60), city VARCHAR(40));
CREATE TABLE IF NOT EXISTS arrived (receipt BIGINT NOT NULL, sold_on DATE NOT NULL, customer VARCHAR(12) NOT NULL, amount DECIMAL(9,2) NOT NULL, file VARCHAR(200) NOT NULL);
CREATE TABLE IF NOT EXISTS sales (file VARCHAR(200), receipt BIGINT, sold_on DATE, customer_key BIGINT, amount DECIMAL(9,2));
CREATE TABLE IF NOT EXISTS load_log (file VARCHAR(200), rows_loaded BIGINT, rows_rejected BIGINT);
CREATE TABLE IF NOT EXISTS load_failures (task VARCHAR(200), file VARCHAR(200), problem VARCHAR(2000));
CREATE TABLE IF NOT EXISTS sales_of_day (sold_on DATE, receipts BIGINT, amount DECIMAL(18,2));
INSERT INTO customer SELECT -1, '?', 'unknown', NULL WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer_key = -1);
