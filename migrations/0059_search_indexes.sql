-- What operators search orders by. On a table so large that nobody may wait while it is read, make
-- these indexes beforehand with `create index concurrently`, under the same names.
-- optional: edges serve without it

create index if not exists buy_order_wallet_idx on buy_order (wallet_address, created_at desc);
create index if not exists buy_order_transaction_idx on buy_order (transaction_id)
  where transaction_id is not null;
create index if not exists buy_order_open_idx on buy_order (status, created_at desc, order_id desc)
  where status not in ('completed', 'cancelled');

create index if not exists sell_order_open_idx on sell_order (status, created_at desc, order_id desc)
  where status not in ('completed', 'cancelled');
create index if not exists sell_order_status_idx on sell_order
  (client_id, status, created_at desc, order_id desc);
create index if not exists sell_order_newest_idx on sell_order (created_at desc, order_id desc);
create index if not exists sell_order_wallet_idx on sell_order (wallet_address, created_at desc);
create index if not exists sell_order_transaction_idx on sell_order (transaction_id)
  where transaction_id is not null;

create index if not exists delivery_failed_idx on delivery (state, delivery_id)
  where state in ('failed', 'disabled');
create index if not exists audit_at_idx on audit (at desc, audit_id desc);
