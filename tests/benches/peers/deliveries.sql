-- Callbacks that are due, each with the event it tells of.
with told as (
    insert into event (client_id, event_id, type, order_id, payload, created_at)
    select '@client@', gen_random_uuid(), 'order.completed', 1000000000 + n,
        jsonb_build_object('orderId', 1000000000 + n, 'partnerOrderIdentifier', 'order-' || n,
            'status', 'completed'),
        now()
    from generate_series(1, @count@) n
    returning client_id, event_id, order_id
)
insert into delivery (client_id, delivery_id, event_id, order_id, url, next_attempt_at, created_at)
select client_id, gen_random_uuid(), event_id, order_id, '@url@', now(), now() from told;
