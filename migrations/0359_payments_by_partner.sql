-- no-transaction
-- optional: edges serve without it
-- Payments of a partner by time, of which operators list the newest.
create index concurrently if not exists payment_partner_idx on payment (client_id, recorded_at, payment_id);
