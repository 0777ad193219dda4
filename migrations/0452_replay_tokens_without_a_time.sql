-- optional: edges serve without it
-- Replay tokens of payloads without a signing time expired after a year. They are remembered for good now, earlier ones, too.
-- The token of a payload with a signing time expires within a quarter of an hour.

set local rampart.all_tenants = 'on';

update signature_replay set expires_at = 'infinity'
where expires_at > rampart_now() + interval '1 day' and isfinite(expires_at);
