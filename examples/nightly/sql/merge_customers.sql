UPDATE customer
SET name = arrived.name, city = arrived.city
FROM customers_arrived AS arrived
WHERE customer.customer = arrived.customer;

INSERT INTO customer
SELECT (SELECT greatest(max(customer_key), 0) FROM customer) + row_number() OVER (ORDER BY customer), customer, name, city
FROM customers_arrived AS arrived
WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer.customer = arrived.customer);
