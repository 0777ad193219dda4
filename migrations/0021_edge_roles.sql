-- A way past row-level security for statements over all tenants, such as those of workers: the
-- transaction says so, and its role must not be an edge's.

-- Whether the transaction may see the rows of every tenant. The role `rampart_edge` and its members,
-- under which requests of partners run, may not, whatever they set.
create function sees_all_tenants() returns boolean language sql stable
  return coalesce(current_setting('rampart.all_tenants', true), '') = 'on'
    and not exists (
      select from pg_roles edge join pg_roles this on this.rolname = current_user
      where edge.rolname = 'rampart_edge' and not this.rolsuper
        and pg_has_role(this.oid, edge.oid, 'usage'));

create policy client_all_tenants on client using ((select sees_all_tenants()));

create policy client_secret_all_tenants on client_secret using ((select sees_all_tenants()));

create policy api_key_all_tenants on api_key using ((select sees_all_tenants()));

create policy verification_key_all_tenants on verification_key using ((select sees_all_tenants()));

create policy refresh_token_all_tenants on refresh_token using ((select sees_all_tenants()));

create policy refresh_family_all_tenants on refresh_family using ((select sees_all_tenants()));

create policy policy_version_all_tenants on policy_version using ((select sees_all_tenants()));

create policy signature_replay_all_tenants on signature_replay using ((select sees_all_tenants()));

create policy idempotency_key_all_tenants on idempotency_key using ((select sees_all_tenants()));

create policy end_user_all_tenants on end_user using ((select sees_all_tenants()));

create policy user_identifier_all_tenants on user_identifier using ((select sees_all_tenants()));

create policy offer_all_tenants on offer using ((select sees_all_tenants()));

create policy buy_order_all_tenants on buy_order using ((select sees_all_tenants()));

create policy order_transition_all_tenants on order_transition using ((select sees_all_tenants()));

create policy event_all_tenants on event using ((select sees_all_tenants()));

create policy delivery_all_tenants on delivery using ((select sees_all_tenants()));

create policy sandbox_step_all_tenants on sandbox_step using ((select sees_all_tenants()));

create policy user_document_all_tenants on user_document using ((select sees_all_tenants()));

create policy email_code_all_tenants on email_code using ((select sees_all_tenants()));

create policy one_time_token_all_tenants on one_time_token using ((select sees_all_tenants()));

create policy mail_outbox_all_tenants on mail_outbox using ((select sees_all_tenants()));

create policy webhook_endpoint_all_tenants on webhook_endpoint using ((select sees_all_tenants()));

create policy checkout_all_tenants on checkout using ((select sees_all_tenants()));

create policy payment_account_all_tenants on payment_account using ((select sees_all_tenants()));

create policy ownership_proof_all_tenants on ownership_proof using ((select sees_all_tenants()));

create policy dca_plan_all_tenants on dca_plan using ((select sees_all_tenants()));

create policy dca_deposit_all_tenants on dca_deposit using ((select sees_all_tenants()));

create policy sell_order_all_tenants on sell_order using ((select sees_all_tenants()));

create policy sell_order_transition_all_tenants on sell_order_transition using ((select sees_all_tenants()));

create policy document_removal_all_tenants on document_removal using ((select sees_all_tenants()));

create policy policy_trial_all_tenants on policy_trial using ((select sees_all_tenants()));

create policy policy_difference_all_tenants on policy_difference using ((select sees_all_tenants()));

create policy policy_sample_all_tenants on policy_sample using ((select sees_all_tenants()));
