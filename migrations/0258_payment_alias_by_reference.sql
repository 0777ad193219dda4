-- no-transaction
-- optional: edges serve without it
-- The payment that has taken a reference beside its own: events and statements find it by that.
create index concurrently if not exists payment_alias_reference_idx on payment_alias (provider_reference);
