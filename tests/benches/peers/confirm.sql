\set number random(1, 9007199254740991)
with allowed as (
    select true as yes
    where (null::numeric is null or exists (
            select from (
                select coalesce(sum(fiat_amount) filter (where side = 'buy'), 0) as bought,
                    coalesce(sum(fiat_amount), 0) as traded
                from user_trade where client_id = '@client@'::uuid and user_id = null::uuid and created_at > now()
            ) as today
            where bought + 250 <= null::numeric and traded + 250 <= null::numeric))
        and (null::uuid is null or exists (
            select from payment_account
            where client_id = '@client@'::uuid and user_id = null::uuid and account_id = null::uuid
                and verified_at is not null and disabled_at is null))
), taken as (
    update offer set confirmed_at = now()
    where client_id = '@client@'::uuid and offer_id = null::uuid and confirmed_at is null and expires_at > now()
        and exists (select from allowed)
    returning offer_id
), placed as (
    insert into buy_order (
        client_id, order_id, created_at, updated_at, offer_id, quote_id, user_id,
        partner_reference, status, status_cause, pair, payment_method, wallet_address,
        destination_tag, wallet_type, fiat_amount, fiat_currency, crypto_amount,
        crypto_currency, price, partner_fee, partner_fee_percentage, provider_fee,
        payment_method_fee, network_fee, spread_fee, affiliate_fee, is_estimated_quote,
        return_url, callback_url, terms_digest, policy_decisions, expires_at)
    select '@client@'::uuid, :number::bigint, now(), now(), null::uuid, gen_random_uuid(), null::uuid, null::text, 'pending', 'confirmed',
        'BTC-EUR', 'creditCard', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', null::text, 'unhosted', 250, 'EUR', 0.00262011,
        'BTC', 95000.12, 2.5, 1, 2.5, 6.5, 1.5, 1.19, 0, false, 'https://shop.example/back', null::text,
        sha256(:number::bigint::text::bytea), '[]'::jsonb, now() + interval '15 minutes'
    from allowed where null::uuid is null or exists (select from taken)
    returning order_id
), noted as (
    insert into order_transition (client_id, order_id, transition_id, at, to_status, cause, actor)
    select '@client@'::uuid, order_id, gen_random_uuid(), now(), 'pending', 'confirmed', 'edge' from placed
), told as (
    insert into event (client_id, event_id, type, order_id, payload, created_at)
    select '@client@'::uuid, gen_random_uuid(), 'order.created', order_id, jsonb_build_object('orderId', order_id, 'status', 'pending'), now() from placed
), sent as (
    insert into delivery (client_id, delivery_id, event_id, order_id, endpoint_id, url, next_attempt_at, created_at)
    select '@client@'::uuid, gen_random_uuid(), gen_random_uuid(), order_id, endpoint_id, url, now(), now()
    from placed cross join webhook_endpoint
    where client_id = '@client@'::uuid and disabled_at is null and (events is null or 'order.created' = any (events))
), staged as (
    insert into sandbox_step (client_id, order_id, event, due_at)
    select '@client@'::uuid, order_id, 'paid', now() + interval '1 day' from placed where false
)
select exists (select from allowed), exists (select from placed);
