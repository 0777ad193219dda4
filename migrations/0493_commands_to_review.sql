-- no-transaction
-- optional: edges serve without it
-- Commands that support has to look at, which are few.
create index concurrently if not exists command_review_idx on command (client_id, order_id)
  where review is not null;
