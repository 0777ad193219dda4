-- Mail that tells a user of a change of how the account is opened.
alter table mail_outbox drop constraint mail_outbox_kind_check;
alter table mail_outbox add constraint mail_outbox_kind_check check (
  kind in ('email-code', 'reset-password', 'webhook-disabled', 'staff-invitation', 'staff-password',
    'checkout-link', 'security-notice')
) not valid;
