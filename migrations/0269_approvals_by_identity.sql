-- no-transaction
-- optional: edges serve without it
-- Open approvals of an operator, by whatever name they were asked for.
create index concurrently if not exists approval_identity_idx on approval (requested_by_identity, digest)
  where used_at is null and refused_by is null;
