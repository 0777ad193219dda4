-- no-transaction
-- optional: edges serve without it
create index concurrently if not exists connector_event_payment_idx
  on connector_event (payment_client_id, payment_id) where payment_id is not null;
