-- no-transaction
-- optional: edges serve without it
-- Mail of all partners, newest first.
create index concurrently if not exists mail_outbox_id_idx on mail_outbox (mail_id);
