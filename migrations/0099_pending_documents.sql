-- no-transaction
-- Sides of identity documents that wait for an operator, oldest first.
-- optional: edges serve without it
create index concurrently if not exists user_document_pending_idx on user_document (created_at)
  where status = 'pending' and media_type is not null;
