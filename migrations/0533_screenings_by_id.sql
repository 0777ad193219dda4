-- no-transaction
-- optional: edges serve without it
-- Lists are in the order of ids, which begin with their time: the index of 0161 has it. Edges of the version before sort all
-- screenings for a page until they are replaced.
drop index concurrently if exists screening_created_idx;
