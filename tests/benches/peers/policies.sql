-- A policy of its own for each client: the one that partner `ruled` has for the order of methods, with
-- a custom section that holds a number, so that no two components are the same.
with ruled as (
    select kind, component, info, config
    from client join policy_version using (client_id) join policy_component using (digest)
    where slug = 'ruled' and kind = 'method-order' and active
), numbered as (
    select client_id, lpad(substr(slug, length('client-') + 1), 8, '0') as number
    from client where slug like 'client-%'
), own as (
    -- The section: its kind, the length of the rest, a name of seven letters, the number.
    select client_id, kind, info, config,
        component || '\x001007'::bytea || convert_to('partner' || number, 'utf8') as component
    from numbered cross join ruled
), stored as (
    insert into policy_component (digest, component, created_at)
    select encode(sha256(component), 'hex'), component, now() from own
)
insert into policy_version (
    client_id, kind, version, digest, size, info, config, active, activation, created_by, created_at)
select client_id, kind, 1, encode(sha256(component), 'hex'), length(component), info, config, true,
    1, 'benchmark', now()
from own;
