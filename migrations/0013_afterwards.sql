-- What is done outside the database once a transaction has asked for it: images removed, mail sent.

-- Images of documents and proofs that are to be removed from the store: their user was erased, or
-- another image took their place. The row goes once the image has gone.
create table document_removal (
  client_id uuid not null references client (client_id),
  document_id uuid not null,
  created_at timestamptz not null,
  primary key (client_id, document_id)
);

alter table document_removal enable row level security;
create policy document_removal_isolation on document_removal
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table mail_outbox
  -- how often it was handed to the mail server
  add column attempts integer not null default 0,
  -- when it may be tried again; while an edge tries, when the edge is taken for dead
  add column next_attempt_at timestamptz not null default '1970-01-01T00:00:00Z';
-- failed: the mail server does not take it
alter table mail_outbox drop constraint mail_outbox_state_check;
alter table mail_outbox add constraint mail_outbox_state_check
  check (state in ('pending', 'sent', 'failed', 'withheld'));
create index mail_outbox_due_idx on mail_outbox (next_attempt_at) where state = 'pending';
