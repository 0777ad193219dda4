-- Commands that nobody gets hold up no later ones of their order, those without a route no more than those that their
-- connector is not capable of.

-- The kind of a command that no connector gets as things are: its connector lacks the capability, its leg has no route,
-- or none outside takes its kind.
create function kind_without_taker(of_kind text, of_name text, way text) returns table (kind text)
language sql stable as $$
  select of_kind
  where case
    when of_name is not null then exists (select from connector_without(of_kind, of_name))
    when way is not null then true
    else not exists (select from connector k where of_kind = any (k.capabilities) and not k.runs_inside)
  end
$$;
