-- The reason that support has to look at a command: `unknown`, nobody knows if money or coins have left; `unpayable`, no payer can be
-- told where to pay. A command of either was rejected or logged, and no queue had it.
alter table command
  add column review text,
  add constraint command_review_check check (review in ('unknown', 'unpayable')) not valid;
