-- no-transaction
-- optional: edges serve without it
-- Screenings of all partners, oldest first.
create index concurrently if not exists screening_created_idx on screening (created_at, screening_id);
