-- One row for each line of an order. A line whose part, customer, supplier or clerk is not known has -1 there; dates are
-- the numbers yyyymmdd.
SELECT l_orderkey, l_linenumber,
       COALESCE(part_sk, -1) AS part_sk,
       COALESCE(customer_sk, -1) AS customer_sk,
       COALESCE(supplier_sk, -1) AS supplier_sk,
       COALESCE(clerk_sk, -1) AS clerk_sk,
       CAST(EXTRACT(year FROM o_orderdate) * 10000 + EXTRACT(month FROM o_orderdate) * 100
            + EXTRACT(day FROM o_orderdate) AS integer) AS order_date,
       CAST(EXTRACT(year FROM l_shipdate) * 10000 + EXTRACT(month FROM l_shipdate) * 100
            + EXTRACT(day FROM l_shipdate) AS integer) AS ship_date,
       CAST(EXTRACT(year FROM l_commitdate) * 10000 + EXTRACT(month FROM l_commitdate) * 100
            + EXTRACT(day FROM l_commitdate) AS integer) AS commit_date,
       CAST(EXTRACT(year FROM l_receiptdate) * 10000 + EXTRACT(month FROM l_receiptdate) * 100
            + EXTRACT(day FROM l_receiptdate) AS integer) AS receipt_date,
       l_quantity, l_tax, l_discount, l_extendedprice
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
LEFT JOIN dim_part ON p_partkey = l_partkey
LEFT JOIN dim_customer ON c_custkey = o_custkey
LEFT JOIN dim_supplier ON s_suppkey = l_suppkey
LEFT JOIN dim_clerk ON dim_clerk.o_clerk = orders.o_clerk
