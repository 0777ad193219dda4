-- no-transaction
-- optional: edges serve without it
-- What was given or taken back of a payment.
create index concurrently if not exists payment_original_idx
  on payment (connector, coalesce(original_reference, provider_reference))
  where kind in ('refunded', 'disputed', 'dispute-won', 'dispute-lost');
