-- A delivery that is sent again begins anew: how long it has failed counts from then, not from its event.

-- null: it was never sent again, or by an edge of the version before
alter table delivery add column sent_again_at timestamptz;
