-- What must be cleared before coins leave.

alter table client
  -- null: the default of its mode
  add column compliance_gate text check (compliance_gate in ('before-payment', 'before-payout', 'none')),
  -- null: guests may order from test clients, and from nobody else
  add column guest_orders_allowed boolean,
  -- largest order of a guest, in fiat; null: what the others may
  add column guest_orders_max numeric check (guest_orders_max > 0),
  add constraint client_compliance_mode_check check (compliance_gate is distinct from 'none' or mode = 'test');

-- When an unhosted wallet was proven to be the user's.
alter table buy_order add column wallet_proven_at timestamptz;

-- True while a paid order must wait: a check of its user is open, or its wallet is not proven.
create function payout_is_held(client uuid, number bigint, gate_of_live text) returns boolean
  language sql stable
  return (
    select coalesce(c.compliance_gate, case when c.mode = 'live' then gate_of_live else 'none' end) <> 'none'
      and ((o.wallet_type = 'unhosted' and o.fiat_amount > 1000 and o.wallet_proven_at is null)
        or (o.user_id is not null and (u.user_id is null or u.deleted_at is not null
          or u.identity_status <> 'verified' or u.amld5_status <> 'verified' or u.dac8_status = 'missing')))
    from buy_order o join client c on c.client_id = o.client_id
      left join end_user u on u.client_id = o.client_id and u.user_id = o.user_id
    where o.client_id = client and o.order_id = number);

-- Paid orders whose coins have not left.
create index buy_order_unsent_idx on buy_order (client_id, order_id)
  where status = 'in progress' and transaction_id is null;
