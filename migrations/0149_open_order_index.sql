-- no-transaction
-- optional: edges serve without it
-- The indexes of 0148 and of pending orders serve what this one served. Edges of the version before list orders that
-- wait without an index until they are replaced.
drop index concurrently if exists buy_order_open_idx;
