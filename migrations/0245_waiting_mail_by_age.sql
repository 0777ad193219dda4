-- no-transaction
-- optional: edges serve without it
-- Mail that waits, oldest first: what is too old to be sent is ended.
create index concurrently if not exists mail_outbox_waiting_idx on mail_outbox (created_at)
  where state = 'pending';
