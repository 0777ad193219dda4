-- no-transaction
-- optional: edges serve without it
-- A page of screenings begins behind one, which is named without its partner.
create index concurrently if not exists screening_id_idx on screening (screening_id);
