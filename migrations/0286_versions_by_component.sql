-- no-transaction
-- optional: edges serve without it
-- The versions of a component, of which one without any is deleted.
create index concurrently if not exists policy_version_digest_idx on policy_version (digest);
