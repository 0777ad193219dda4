-- no-transaction
-- optional: edges serve without it
-- The orders of all partners by time. New ones come last, on the page that Postgres remembers: where the newest came first, each
-- was searched for from the root, and pages were left half full. A list of the newest first reads it backwards.
create index concurrently if not exists buy_order_created_at_idx on buy_order (created_at, order_id);
