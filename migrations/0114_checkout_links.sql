-- Mail with a link by which a shopper goes on with a checkout on another device.
alter table mail_outbox drop constraint mail_outbox_kind_check;
alter table mail_outbox add constraint mail_outbox_kind_check check (
  kind in ('email-code', 'reset-password', 'webhook-disabled', 'staff-invitation', 'staff-password',
    'checkout-link')
) not valid;
