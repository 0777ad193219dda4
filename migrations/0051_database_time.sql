-- Rows are judged by the database's time, whatever an edge takes it for. Tests move it within a transaction by
-- rampart.time_offset, an interval; nothing else sets that.
create function rampart_now() returns timestamptz language sql stable as $$
  select now() + coalesce(nullif(current_setting('rampart.time_offset', true), ''), '0 s')::interval
$$;

-- Trades after this time count towards the limits of their user.
create function trades_counted_since() returns timestamptz language sql stable as $$
  select rampart_now() - interval '24 hours'
$$;
