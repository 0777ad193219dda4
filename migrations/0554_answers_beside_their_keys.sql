-- optional: edges serve without it
-- An answer is as long as the row of its key: where the page has room for it, saving it adds no entry to the indexes. Rows that
-- are there stay as they are until they end.
alter table idempotency_key set (fillfactor = 30);
