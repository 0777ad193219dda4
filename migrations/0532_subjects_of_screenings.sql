-- optional: edges serve without it
-- A screening is written in the transaction that has written its order, or has read or changed its user, and neither is ever
-- deleted. Postgres looked the order up again, and locked its row, for each order of a live partner.
-- In the order of a confirm, with which this would meet in a deadlock otherwise.
lock table end_user, buy_order, screening in access exclusive mode;
alter table screening
  drop constraint screening_client_id_order_id_fkey,
  drop constraint screening_client_id_user_id_fkey;
