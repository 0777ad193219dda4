-- The id of an event's delivery to an endpoint follows from both: nobody draws one for each endpoint that a tenant may
-- have. It begins with the event's time, as a UUID of version 7 does; its version is 8 (RFC 9562, section 5.8).
create function delivery_id(event_id uuid, endpoint_id uuid) returns uuid language sql immutable
  return overlay(overlay(
    substr(replace(event_id::text, '-', ''), 1, 12)
      || substr(encode(sha256(uuid_send(event_id) || uuid_send(endpoint_id)), 'hex'), 1, 20)
    placing '8' from 13) placing 'a' from 17)::uuid;
