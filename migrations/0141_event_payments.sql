-- An event names the payment that it reports: its report is deleted with the personal data of the payment's user. The event
-- stays, with its digest, by which a repetition is known.
alter table connector_event
  -- the tenant in whose book the payment is
  add column payment_client_id uuid,
  add column payment_id uuid,
  alter column sealed_report drop not null;
