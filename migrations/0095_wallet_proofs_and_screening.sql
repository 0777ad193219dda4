-- What clears the reasons for which coins wait: proofs of wallets, screening, identity checks.

-- The message that a user signs to prove an order's wallet: one at a time, good once.
create table wallet_challenge (
  client_id uuid not null,
  order_id bigint not null,
  -- the order's user when it was shown; null for a guest
  user_id uuid,
  nonce text not null,
  message text not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (client_id, order_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id)
);

-- Evidence that a wallet is its user's. Append-only: the first one counts.
create table wallet_proof (
  client_id uuid not null,
  order_id bigint not null,
  kind text not null check (kind in ('signature', 'partner', 'operator')),
  -- the partner's slug or the operator's name; `user` for a signature
  actor text not null,
  reason text not null,
  -- the signed message and its signature; null for an assertion
  message text,
  signature text,
  recorded_at timestamptz not null,
  primary key (client_id, order_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id),
  constraint wallet_proof_signature_check check ((kind = 'signature') = (signature is not null))
);

-- The screening of an order's wallet, or of a person.
create table screening (
  client_id uuid not null,
  screening_id uuid not null,
  -- the wallet's order, or else the person
  order_id bigint,
  user_id uuid,
  -- the command that asks for it, whose result has the provider's reasons; a later one takes its
  -- place; null in the sandbox
  command_id uuid,
  state text not null default 'pending' check (state in ('pending', 'clear', 'review', 'block')),
  -- the operator who decided, and why
  decided_by text,
  decision_reason text,
  created_at timestamptz not null,
  decided_at timestamptz,
  primary key (client_id, screening_id),
  constraint screening_subject_check check ((order_id is null) <> (user_id is null)),
  constraint screening_order_key unique (client_id, order_id),
  constraint screening_user_key unique (client_id, user_id),
  foreign key (client_id, order_id) references buy_order (client_id, order_id),
  foreign key (client_id, user_id) references end_user (client_id, user_id)
);
create index screening_command_idx on screening (client_id, command_id);
create index screening_review_idx on screening (created_at, screening_id) where state in ('review', 'block');

-- The person that a command is about.
alter table command add column user_id uuid;
create index command_user_idx on command (client_id, user_id, kind, created_at) where user_id is not null;

alter table wallet_challenge enable row level security;
alter table wallet_challenge force row level security;
create policy wallet_challenge_isolation on wallet_challenge
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy wallet_challenge_all_tenants on wallet_challenge using ((select sees_all_tenants()));

alter table wallet_proof enable row level security;
alter table wallet_proof force row level security;
create policy wallet_proof_isolation on wallet_proof
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy wallet_proof_all_tenants on wallet_proof using ((select sees_all_tenants()));

alter table screening enable row level security;
alter table screening force row level security;
create policy screening_isolation on screening
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
create policy screening_all_tenants on screening using ((select sees_all_tenants()));

-- The checks of a person that are open, in the order in which they are shown.
create function user_holds(client uuid, person uuid) returns text[] language sql stable
  return (
    select array_remove(array[
      case when u.privacy_agreement_status is distinct from 'verified' then 'registration' end,
      case when u.user_id is null or u.deleted_at is not null or u.disabled_at is not null
        then 'user' end,
      case when u.identity_status is distinct from 'verified' then 'identity' end,
      case when u.amld5_status is distinct from 'verified' then 'amld5' end,
      case when u.dac8_status = 'missing' then 'tax' end,
      case when coalesce(u.residential_address_status, '') not in ('present', 'verified')
        then 'address' end,
      (select case when s.state = 'pending' then 'screening' else 'screening-review' end
        from screening s
        where s.client_id = client and s.user_id = person and s.state <> 'clear')], null)
    from (select 1) one left join end_user u on u.client_id = client and u.user_id = person);

-- The checks that an order's payout waits for, in the order in which they are shown.
create function payout_holds(client uuid, number bigint) returns text[] language sql stable
  return (
    select case when o.user_id is null then '{}' else user_holds(client, o.user_id) end
      || array_remove(array[
        case when o.account_id is not null
          and not account_may_trade(o.client_id, o.user_id, o.account_id) then 'account' end,
        case when o.wallet_type = 'unhosted' and o.fiat_amount > 1000 and o.wallet_proven_at is null
          then 'wallet' end,
        (select case when s.state = 'pending' then 'screening' else 'screening-review' end
          from screening s
          where s.client_id = client and s.order_id = number and s.state <> 'clear')], null)
    from buy_order o where o.client_id = client and o.order_id = number);

-- True while a paid order must wait for a check.
create or replace function payout_is_held(client uuid, number bigint, gate_of_live text) returns boolean
  language sql stable
  return (
    select coalesce(c.compliance_gate, case when c.mode = 'live' then gate_of_live else 'none' end) <> 'none'
      and cardinality(payout_holds(client, number)) > 0
    from client c where c.client_id = client);

-- True if a connector takes commands of this kind.
create function connector_takes(command_kind text) returns boolean language sql stable
  return exists (select from connector where command_kind = any (capabilities));
