-- no-transaction
-- optional: edges serve without it
-- The indexes of 0146 and of pending orders serve what this one served. Edges of the version before search a
-- partner's orders of one status without an index until they are replaced.
drop index concurrently if exists buy_order_status_idx;
