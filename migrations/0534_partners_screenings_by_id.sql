-- no-transaction
-- optional: edges serve without it
-- The primary key has a partner's screenings in the order of ids. Edges of the version before sort a partner's for a page until
-- they are replaced.
drop index concurrently if exists screening_partner_idx;
