-- The certificate that edges order from an authority by ACME and all serve.

create table acme_account (
  -- directory of the authority
  directory_url text primary key,
  -- credentials, sealed by the master key
  sealed bytea not null,
  created_at timestamptz not null default now()
);

create table acme_certificate (
  -- names that it is for, in the order of the configuration, with commas between them
  domains text primary key,
  -- chain in PEM, and its key, sealed by the master key; null until the first order has ended
  chain text,
  sealed_key bytea,
  not_after timestamptz,
  renew_at timestamptz,
  -- the edge that orders holds it until then
  leased_until timestamptz,
  -- failures since the last success, and the time before which no edge tries again
  failures integer not null default 0 check (failures >= 0),
  next_attempt_at timestamptz not null default now(),
  check ((chain is null) = (sealed_key is null)),
  check ((chain is null) = (not_after is null)),
  check ((chain is null) = (renew_at is null))
);

-- What the authority looks for in a handshake with a name, on whichever edge it arrives.
create table acme_challenge (
  domain text primary key,
  -- SHA-256 of the key authorization (RFC 8737)
  digest bytea not null check (octet_length(digest) = 32),
  expires_at timestamptz not null
);
