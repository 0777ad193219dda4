-- What partners' policies logged is isolated like every tenant's table.

alter table policy_log force row level security;
create policy policy_log_all_tenants on policy_log using ((select sees_all_tenants()));
