-- no-transaction
-- optional: edges serve without it
-- The index of 0128 serves every statement that this one served: an order's number is nearly unique.
drop index concurrently if exists payment_match_order_idx;
