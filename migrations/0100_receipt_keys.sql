-- Keys that sign receipts (Ed25519). Public ones are published for good: receipts are verified years later.
create table receipt_key (
  generation integer primary key check (generation > 0),
  -- the thumbprint of the public key (RFC 7638)
  key_id text not null,
  public_key bytea not null check (octet_length(public_key) = 32),
  -- the private key, sealed by the master key
  sealed bytea not null,
  -- later than its publication, so that whoever caches the published keys knows it
  signs_from timestamptz not null,
  created_at timestamptz not null,
  constraint receipt_key_id_key unique (key_id)
);
