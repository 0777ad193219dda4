-- An entry that came in behind what is settled would be in no balance. No transaction takes as long as an entry waits to be settled;
-- one that does, or whose edge's clock is that late, is refused at its commit, and made again with an id of its time.
create function ledger_entry_must_be_unsettled() returns trigger language plpgsql as $$
begin
  if new.entry_id <= (select settled_place from ledger_check) then
    raise exception 'ledger entry % is behind what is settled', new.entry_id using errcode = '40001';
  end if;
  return null;
end $$;
create constraint trigger ledger_entry_settled_check after insert on ledger_entry
  deferrable initially deferred for each row execute function ledger_entry_must_be_unsettled();
