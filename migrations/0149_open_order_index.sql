-- no-transaction
-- optional: edges serve without it
-- The indexes of 0148 and of pending orders serve every statement that this one served.
drop index concurrently if exists buy_order_open_idx;
