-- The sandbox is a connector that runs inside the edges: orders of test clients are commanded to it, as those of
-- live ones are to the connectors of their routes.

-- true: no program outside; it has no token, and no route leads to it
alter table connector add column runs_inside boolean not null default false;
insert into connector (name, capabilities, created_by, created_at, runs_inside) values (
  'sandbox',
  array['payment.create', 'payment.cancel', 'payment.refund', 'payout.send', 'deposit.address', 'transfer.send',
    'identity.start', 'screening.check', 'card.verify', 'wallet-provider.verify'],
  'rampart', now(), true);

-- True if a connector outside takes commands of this kind.
create or replace function connector_takes(command_kind text) returns boolean language sql stable
  return exists (select from connector where command_kind = any (capabilities) and not runs_inside);

alter table command
  -- when the sandbox tells what follows a command that is done; null: nothing does
  add column report_due_at timestamptz,
  -- null: the sandbox had done it before there were commands for it
  alter column sealed_body drop not null;

-- Lets the connector go on where the sandbox had a schedule of its own. Edges of the version before may still write
-- steps, so the sandbox's worker calls it too; the table goes once there are no such edges.
-- Gives their number.
create function take_over_sandbox_steps() returns bigint language sql as $$
  with step as (
    delete from sandbox_step returning client_id, order_id, event, due_at
  ), taken as (
    insert into command (client_id, command_id, kind, order_id, idempotency_key, connector, state, attempt, due_at,
      created_at, finished_at, report_due_at)
    select step.client_id, gen_random_uuid(), made.kind, step.order_id, made.effect, 'sandbox', 'done', 1, now(),
      now(), now(), case when made.tells then step.due_at end
    from step cross join lateral (values
      ('payment.create', 'payment/' || order_id, event not in ('coins-sent', 'confirmed-on-chain', 'hold')),
      ('payout.send', 'payout/' || order_id || '/0', true)
    ) made (kind, effect, tells)
    where made.kind = 'payment.create' or event = 'confirmed-on-chain'
    on conflict do nothing returning command_id
  )
  select count(*) from taken
$$;
select take_over_sandbox_steps();
