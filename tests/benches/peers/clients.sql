-- Clients beside the two partners. The secret of an API key is the client's slug.
insert into client (client_id, slug, name, mode, username, rate_limits, revision, created_at)
select gen_random_uuid(), 'client-' || n, 'Client ' || n, 'test', 'user-' || n,
    '{"client": "@rate@"}', 1, now()
from generate_series(1, @count@) n;

insert into api_key (client_id, api_key_id, public_id, secret_digest, created_at)
select client_id, gen_random_uuid(), substr(md5(slug), 1, 16), sha256(slug::bytea), now()
from client where slug like 'client-%';
