-- no-transaction
-- optional: edges serve without it
-- Payouts of one transaction, by the line of a statement that names it.
create index concurrently if not exists payment_transaction_idx on payment (connector, transaction_id)
  where transaction_id is not null;
