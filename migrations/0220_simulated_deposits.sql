-- Deposits to savings plans of test clients are the sandbox's for good, as their payment.create says. Those of earlier
-- builds have none: once their client is live, real coins would follow them.

set local rampart.all_tenants = 'on';

-- Gives the open deposits of a client the payment that the sandbox has made. Gives their number.
create function simulate_deposits(of_client uuid) returns bigint language sql as $$
  with made as (
    insert into command (client_id, command_id, kind, order_id, idempotency_key, connector, state, attempt, due_at,
      created_at, finished_at)
    select o.client_id, gen_random_uuid(), 'payment.create', o.order_id, 'payment/' || o.order_id, 'sandbox', 'done', 1,
      rampart_now(), clock_timestamp(), now()
    from buy_order o
    where o.client_id = of_client and o.is_dca_order and o.status in ('in progress', 'blocked')
      and not exists (select from command c
        where c.client_id = o.client_id and c.order_id = o.order_id and c.kind = 'payment.create')
    on conflict on constraint command_idempotency_key_key do nothing returning command_id
  )
  select count(*) from made
$$;

-- Edges of the version before may still take deposits: the statement that makes a client live calls it too.
select simulate_deposits(client_id) from client where mode = 'test';
