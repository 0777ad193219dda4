-- optional: edges serve without it
-- Whoever writes an event has read its client before, and no client is ever deleted. Postgres looked the client up again, and
-- locked its row, for each event.
alter table event drop constraint event_client_id_fkey;
