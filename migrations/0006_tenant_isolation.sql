-- The second lock: a role that is not the tables' owner sees only the client that
-- `set_config('rampart.client_id', …, true)` names, whatever a statement forgets to say.

alter table client enable row level security;
create policy client_isolation on client
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table client_secret enable row level security;
create policy client_secret_isolation on client_secret
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table api_key enable row level security;
create policy api_key_isolation on api_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table verification_key enable row level security;
create policy verification_key_isolation on verification_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table refresh_token enable row level security;
create policy refresh_token_isolation on refresh_token
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table refresh_family enable row level security;
create policy refresh_family_isolation on refresh_family
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table policy_version enable row level security;
create policy policy_version_isolation on policy_version
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table signature_replay enable row level security;
create policy signature_replay_isolation on signature_replay
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table idempotency_key enable row level security;
create policy idempotency_key_isolation on idempotency_key
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table end_user enable row level security;
create policy end_user_isolation on end_user
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table user_identifier enable row level security;
create policy user_identifier_isolation on user_identifier
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table offer enable row level security;
create policy offer_isolation on offer
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table buy_order enable row level security;
create policy buy_order_isolation on buy_order
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table order_transition enable row level security;
create policy order_transition_isolation on order_transition
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table event enable row level security;
create policy event_isolation on event
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table delivery enable row level security;
create policy delivery_isolation on delivery
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);

alter table sandbox_step enable row level security;
create policy sandbox_step_isolation on sandbox_step
  using (client_id = nullif(current_setting('rampart.client_id', true), '')::uuid);
