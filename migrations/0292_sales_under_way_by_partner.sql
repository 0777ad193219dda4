-- no-transaction
-- optional: edges serve without it
-- Sales under way by partner: the sweep of transfers takes turns between them.
create index concurrently if not exists sell_order_under_way_idx on sell_order (client_id, order_id)
  where status = 'in progress';
