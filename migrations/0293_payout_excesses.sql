-- no-transaction
-- optional: edges serve without it
-- What has left of orders beyond what they owed: few.
create index concurrently if not exists ledger_entry_excess_idx on ledger_entry (client_id, order_id)
  where kind = 'payout-excess';
