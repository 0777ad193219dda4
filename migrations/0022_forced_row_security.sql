-- Row-level security counts for the tables' owner too: an edge that runs as the owner names its tenant
-- like any other.

alter table client force row level security;
alter table client_secret force row level security;
alter table api_key force row level security;
alter table verification_key force row level security;
alter table refresh_token force row level security;
alter table refresh_family force row level security;
alter table policy_version force row level security;
alter table signature_replay force row level security;
alter table idempotency_key force row level security;
alter table end_user force row level security;
alter table user_identifier force row level security;
alter table offer force row level security;
alter table buy_order force row level security;
alter table order_transition force row level security;
alter table event force row level security;
alter table delivery force row level security;
alter table sandbox_step force row level security;
alter table user_document force row level security;
alter table email_code force row level security;
alter table one_time_token force row level security;
alter table mail_outbox force row level security;
alter table webhook_endpoint force row level security;
alter table checkout force row level security;
alter table payment_account force row level security;
alter table ownership_proof force row level security;
alter table dca_plan force row level security;
alter table dca_deposit force row level security;
alter table sell_order force row level security;
alter table sell_order_transition force row level security;
alter table document_removal force row level security;
alter table policy_trial force row level security;
alter table policy_difference force row level security;
alter table policy_sample force row level security;
