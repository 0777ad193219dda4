-- Prices by the readings of several sources, and quotes that are void from a time on.

-- The prices of the first day: nobody has set or observed them.
delete from price
where fixed and not exists (select from audit where action = 'price.set' and target = price.pair);

alter table price
  -- of a price set by hand: it is not quoted from this age on
  add column max_age_seconds integer check (max_age_seconds > 0),
  -- what the sources say instead, too far away to be believed; the pair is closed while it stands here
  add column deviating numeric check (deviating > 0),
  add column deviating_since timestamptz,
  add constraint price_deviating_since_check check ((deviating is null) = (deviating_since is null));

alter table currency_pair
  -- quotes sealed before are void; null: none
  add column quotes_valid_from timestamptz,
  -- when that was raised, and the catalogue's revision that says so
  add column quotes_raised_at timestamptz,
  add column quotes_raised_revision bigint;

-- The newest word of each source, whatever followed from it.
create table price_reading (
  pair text not null references currency_pair (pair),
  source text not null,
  price numeric not null check (price > 0),
  -- by the source's clock
  observed_at timestamptz not null,
  read_at timestamptz not null,
  primary key (pair, source)
);

-- A quote sealed before its pair's quotes became valid, or afterwards by an edge that did not know of it yet.
create function quote_is_void(sealed_at timestamptz, sealed_revision bigint,
    valid_from timestamptz, raised_at timestamptz, raised_revision bigint)
  returns boolean language sql immutable
  return coalesce(sealed_at < valid_from, false)
    or coalesce(sealed_at >= raised_at and sealed_revision < raised_revision, false);

update change_counter set revision = revision + 1 where scope = 'catalogue';
