-- no-transaction
-- optional: edges serve without it
-- The refunds that were asked for of late: the money that waits was looked for in the books of all that ever were.
create index concurrently if not exists payment_refund_time_idx on payment_refund (requested_at);
