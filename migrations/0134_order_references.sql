-- no-transaction
-- optional: edges serve without it
-- Most orders have no reference of their partner's: the index before this one had an entry for each of them.
create index concurrently if not exists buy_order_partner_reference_idx
  on buy_order (client_id, partner_reference, created_at desc) where partner_reference is not null;
