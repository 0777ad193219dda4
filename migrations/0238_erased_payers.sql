-- The user of an order, bought or sold, if that user is erased: what is told of the payer afterwards is not kept.
create function erased_user_of(of_client uuid, of_order bigint)
returns table (user_id uuid)
language sql stable as $$
  select u.user_id
  from (
    select o.user_id from buy_order o where o.client_id = of_client and o.order_id = of_order
    union all
    select o.user_id from sell_order o where o.client_id = of_client and o.order_id = of_order
  ) o
  join end_user u on u.client_id = of_client and u.user_id = o.user_id
  where u.deleted_at is not null
$$;
