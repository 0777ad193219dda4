-- Orders by bank transfer have no end that partners are told, and end all the same.
create index if not exists buy_order_transfer_expiry_idx on buy_order (created_at)
  where status = 'pending' and expires_at is null;
