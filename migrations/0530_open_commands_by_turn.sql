-- no-transaction
-- optional: edges serve without it
-- Every statement that finds a connector's open commands does so by the index of 0285, which has them partner by partner; none
-- reads those of one connector by their time alone.
drop index concurrently if exists command_open_idx;
