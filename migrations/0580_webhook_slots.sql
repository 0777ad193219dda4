-- Webhook endpoints of a partner for each type of events: there were ten places, and more types.
alter table webhook_endpoint drop constraint webhook_endpoint_slot_check;
alter table webhook_endpoint add constraint webhook_endpoint_slot_check
  check (slot between 1 and 50);
