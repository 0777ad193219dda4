-- The rule of 0021 without a subquery. Postgres makes it a part of the plan of the statement that asks; one with a
-- subquery it planned anew for every table of every statement of a worker, in the balance check of each posting too.
create or replace function sees_all_tenants() returns boolean language sql stable
  return coalesce(current_setting('rampart.all_tenants', true), '') = 'on'
    and (current_setting('is_superuser') = 'on'
      or not coalesce(pg_has_role(to_regrole('rampart_edge')::oid, 'usage'), false));
