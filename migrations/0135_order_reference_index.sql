-- no-transaction
-- optional: edges serve without it
-- The index of 0134 serves every statement that this one served.
drop index concurrently if exists buy_order_reference_idx;
