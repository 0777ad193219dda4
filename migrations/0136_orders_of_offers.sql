-- no-transaction
-- Most orders are under no offer: the constraint's index had an entry for each of them.
create unique index concurrently if not exists buy_order_offer_idx
  on buy_order (client_id, offer_id) where offer_id is not null;
