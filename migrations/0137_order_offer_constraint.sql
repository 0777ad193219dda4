-- The index of 0136 holds one order to an offer.
alter table buy_order drop constraint buy_order_offer_id_key;
