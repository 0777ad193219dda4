-- no-transaction
-- optional: edges serve without it
-- Mail that waits, by partner and kind, of which each has its turn.
create index concurrently if not exists mail_outbox_turn_idx
  on mail_outbox (client_id, kind, next_attempt_at, mail_id) where state = 'pending';
