-- A refund that a person makes at the provider, and that no command of ours explains, takes what was set aside for one: the command
-- stayed open, so that the payer was given the money twice.

-- The part that its provider has told of as given back by somebody else than us.
alter table payment_refund_withdrawal add column told numeric not null default 0 check (told >= 0);

-- What its provider has told of as given back of a payment, as far as that was set aside for it then, beyond what the payment's
-- refunds explain: those that are done, have begun, or are made by hand. What a withdrawal has noted as told is explained. An
-- attempt that is named has ended and sent nothing.
create function refunds_told_unasked(of_client uuid, of_payment uuid, of_attempt uuid) returns table (amount numeric)
language sql stable as $$
  select greatest(told.amount - asked.amount, 0)
  from payment p
  left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
  cross join lateral (
    -- the most by which reports have exceeded what was set aside until then was not set aside for them
    select coalesce(sum(line.amount) filter (where line.is_told), 0)
      - greatest(max(line.balance) filter (where line.is_told), 0) as amount
    from (
      select one.is_told, one.amount, sum(one.amount) over (order by one.place) as balance
      from (
        -- ids tell the order: they are made under the book's lock, and begin with their time. Of a refund that is withdrawn no
        -- report has taken more than its withdrawal notes
        select r.refund_id as place, -coalesce(w.told, r.amount) as amount, false as is_told
        from payment_refund r
        left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
        where r.client_id = p.client_id and r.payment_id = p.payment_id
        union all
        select e.entry_id, t.amount, true
        from payment t
        join ledger_entry e on e.client_id = coalesce(m.to_client_id, p.client_id) and e.payment_id = t.payment_id
        where t.connector = p.connector and t.kind = 'refunded' and t.currency = p.currency
          and coalesce(t.original_reference, t.provider_reference) = p.provider_reference
          and e.kind = 'refunded'
      ) one
    ) line
  ) told
  cross join lateral (
    select coalesce(sum(
      case
        when w.refund_id is not null then w.told
        when c.state = 'rejected' then 0
        when c.state = 'open' and (c.attempt = c.retries or c.command_id = of_attempt) then 0
        else r.amount
      end), 0) as amount
    from payment_refund r
    left join payment_refund_withdrawal w on w.client_id = r.client_id and w.refund_id = r.refund_id
    left join command c on c.client_id = coalesce(m.to_client_id, p.client_id)
      and c.idempotency_key = 'refund/' || r.refund_id::text
    where r.client_id = p.client_id and r.payment_id = p.payment_id
  ) asked
  where p.client_id = of_client and p.payment_id = of_payment
$$;
