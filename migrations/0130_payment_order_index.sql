-- no-transaction
-- optional: edges serve without it
-- The index of 0127 serves every statement that this one served: an order's number is nearly unique.
drop index concurrently if exists payment_order_idx;
