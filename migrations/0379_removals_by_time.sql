-- no-transaction
-- optional: edges serve without it
-- Images that are to be removed, oldest first.
create index concurrently if not exists document_removal_due_idx on document_removal (created_at);
