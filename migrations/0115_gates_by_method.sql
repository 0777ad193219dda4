-- The gate of a payment method's kind, before the partner's own: {"card": "before-payment"}.
alter table client
  add column compliance_gates jsonb not null default '{}' check (jsonb_typeof(compliance_gates) = 'object');
alter table client add constraint client_compliance_gates_mode_check check (
  mode = 'test' or not jsonb_path_exists(compliance_gates, '$.* ? (@ == "none")')) not valid;

-- True while a paid order must wait for a check.
create or replace function payout_is_held(client uuid, number bigint, gate_of_live text) returns boolean
  language sql stable
  return (
    select coalesce(
        c.compliance_gates ->> (
          select m.kind from buy_order o join payment_method m on m.code = o.payment_method
          where o.client_id = client and o.order_id = number),
        c.compliance_gate, case when c.mode = 'live' then gate_of_live else 'none' end) <> 'none'
      and cardinality(payout_holds(client, number)) > 0
    from client c where c.client_id = client);
