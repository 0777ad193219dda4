-- no-transaction
-- optional: edges serve without it
-- The index of 0155 serves what this one served.
drop index concurrently if exists buy_order_newest_idx;
