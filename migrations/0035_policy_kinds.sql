-- The binary knows the kinds of policies; the tables only bound the form of their names, so that a new
-- kind needs no migration.

alter table policy_version
  drop constraint policy_version_kind_check,
  add constraint policy_version_kind_check check (kind ~ '^[a-z][a-z-]{0,31}$') not valid;

alter table policy_trial
  drop constraint policy_trial_kind_check,
  add constraint policy_trial_kind_check check (kind ~ '^[a-z][a-z-]{0,31}$') not valid;

-- Only kinds without personal data are sampled.
alter table policy_sample
  drop constraint policy_sample_kind_check,
  add constraint policy_sample_kind_check check (kind <> 'signature' and kind ~ '^[a-z][a-z-]{0,31}$') not valid;

alter table policy_version validate constraint policy_version_kind_check;
alter table policy_trial validate constraint policy_trial_kind_check;
alter table policy_sample validate constraint policy_sample_kind_check;
