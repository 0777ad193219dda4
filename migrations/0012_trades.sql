-- What a user has traded, and from or to which account; what operators say of sales.

alter table buy_order
  -- the account that is paid from; null: none was named
  add column account_id uuid;

alter table sell_order
  -- the operator's words for what brought it to its status
  add column status_reason text;

alter table sell_order_transition
  add column reason text;

-- Orders that count towards their user's limits: all but those that came to nothing. It asks with
-- the rights of whoever reads it, so row-level security of the tables holds.
create view user_trade with (security_invoker = true) as
  select client_id, user_id, 'buy' as side, payment_method, account_id, fiat_amount, created_at
    from buy_order where user_id is not null and status not in ('cancelled', 'refunded')
  union all
  select client_id, user_id, 'sell' as side, payment_method, account_id, fiat_amount, created_at
    from sell_order where user_id is not null and status not in ('cancelled', 'refunded');

-- Operators name a sale by its number alone.
create index sell_order_id_idx on sell_order (order_id);
