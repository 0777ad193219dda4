-- no-transaction
-- optional: edges serve without it
-- Screenings of a partner, oldest first.
create index concurrently if not exists screening_partner_idx on screening (client_id, created_at, screening_id);
