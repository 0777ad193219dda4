-- no-transaction
-- optional: edges serve without it
-- The unsent orders of a user, which wait for what is known of the person.
create index concurrently if not exists buy_order_user_unsent_idx on buy_order (client_id, user_id)
  where status = 'in progress' and transaction_id is null and user_id is not null;
