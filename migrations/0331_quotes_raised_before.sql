-- What an earlier raise of a pair's quotes_valid_from has voided stays void after a later one. Of the raises only the last one was
-- known: a quote of an edge that had not heard of the first became valid again, if it was sealed between the two.

alter table currency_pair
  -- the raises before the last one, oldest first, as far as they still decide: when each was, and the catalogue's revision that says so
  add column quotes_raised_before timestamptz[] not null default '{}',
  add column quotes_revisions_before bigint[] not null default '{}';

-- As with five arguments, which edges of the version before use, with the raises before the last one.
create function quote_is_void(sealed_at timestamptz, sealed_revision bigint,
    valid_from timestamptz, raised_at timestamptz, raised_revision bigint,
    raised_before timestamptz[], revisions_before bigint[])
  returns boolean language sql immutable
  return coalesce(sealed_at < valid_from, false)
    or coalesce(sealed_at >= raised_at and sealed_revision < raised_revision, false)
    -- by the newest of them that is not after the quote; none has the number 0
    or coalesce(sealed_revision < revisions_before[width_bucket(sealed_at, raised_before)], false);
