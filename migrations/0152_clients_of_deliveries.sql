-- optional: edges serve without it
-- As events (0151), deliveries name clients that are there.
alter table delivery drop constraint delivery_client_id_fkey;
