-- no-transaction
-- optional: edges serve without it
-- The result of a screening's command finds the screening by its order or its user, which are keys. Edges of the version before
-- read a partner's screenings for a result until they are replaced.
drop index concurrently if exists screening_command_idx;
