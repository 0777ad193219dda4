-- A lane of deliveries per webhook endpoint, and endpoints that are switched off after days of
-- failure.

-- false: waits for its next attempt, or is claimed. Those that are true are what a claim looks at; a
-- row becomes true again when its time has come.
alter table delivery add column ready boolean not null default true;

-- the first failure since the last success; null: its last attempt was answered with 2xx
alter table webhook_endpoint add column failing_since timestamptz;

-- where the partner's people are told of what needs them
alter table client add column contact_email text;

alter table mail_outbox drop constraint mail_outbox_kind_check;
alter table mail_outbox add constraint mail_outbox_kind_check
  check (kind in ('email-code', 'reset-password', 'webhook-disabled')) not valid;
