-- A mail that tells a member of a new passkey.
alter table emails drop constraint emails_kind_check, drop constraint email_of_app_or_member, drop constraint email_has_reader;
alter table emails
  add constraint emails_kind_check check
    (kind in ('invitation', 'payee_code', 'payee_changed', 'payout_sent', 'address_changed', 'alert_opened', 'alert_closed', 'run_drafted',
              'weekly_report', 'member_invitation', 'member_sign_in', 'passkey_added')) not valid,
  add constraint email_of_app_or_member check
    ((member_id is not null) = (kind in ('member_invitation', 'member_sign_in', 'passkey_added'))
     and (account_id is null) = (member_id is null) and (app_id is null) = (member_id is not null)) not valid,
  add constraint email_has_reader check
    ((affiliate_id is null) = (kind in ('alert_opened', 'alert_closed', 'run_drafted', 'weekly_report', 'member_invitation', 'member_sign_in',
                                        'passkey_added'))
     and case kind when 'payee_changed' then true
                   else (recipient is null) = (kind in ('invitation', 'payee_code', 'payout_sent', 'member_invitation', 'member_sign_in',
                                                        'passkey_added')) end) not valid;
