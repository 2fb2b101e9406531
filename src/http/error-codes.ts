import { MAX_ENDPOINTS } from '../domain/outgoing-webhooks.ts';
import { MOST_PASSKEYS } from '../domain/passkeys.ts';

/**
 * Every error of the API: its stable code, its status, its title, and what the caller does next. `docs/errors.md` and
 * the OpenAPI document are made from this table.
 */
export const ERRORS = {
  invalid_request: [
    400,
    'The request is invalid',
    'Fix the fields that `errors` lists, then send the request again.',
  ],
  invalid_cursor: [
    400,
    'The cursor is invalid',
    'Pass the `nextCursor` of the same list with the same filters, or start again without a cursor.',
  ],
  placeholder_user_id: [
    400,
    'The user id is a placeholder',
    "Send the app's own id of a signed-in user in `customerUserId`, and do not call identify before there is one. A text such as `undefined`, `null` or `guest` may be any number of persons, so it is never a user.",
  ],
  unauthorized: [
    401,
    'The key is missing or invalid',
    'Send `Authorization: Bearer KEY` with a key of the kind that `detail` names. For a webhook, compare the secret here and at the provider.',
  ],
  forbidden: [
    403,
    'The key lacks a permission',
    'Use a key with the permission that `detail` names, which the operator creates with `tributary keys create --permissions`, or ask an owner of the account for another role.',
  ],
  cross_origin: [
    403,
    'The call comes from another site',
    'Only pages of this service may use the session of a browser. A program sends a key instead: `Authorization: Bearer KEY`.',
  ],
  invalid_sign_in_link: [
    401,
    'The sign-in link is not valid',
    'A link works once and for a short time. A member enters the own address on the sign-in page to get another one; `npm run -s admin -- console` creates one, too.',
  ],
  session_not_raised: [
    403,
    'The session may not pay',
    'Send a key with the permission `payout` or the answer of a passkey to `POST /session/raise`, or, as a member, open in this browser the link that `POST /session/mail-link` mails. The session may then pay for 15 minutes.',
  ],
  session_too_old: [
    403,
    'The sign-in is too long ago',
    'Nothing was changed. Sign in again, then send the request within 15 minutes.',
  ],
  invalid_passkey: [
    403,
    'The passkey was refused',
    'It is not known here or was revoked, or its answer is invalid, late or was sent before. Passkeys work at the address of the service alone (`PUBLIC_URL`). Try again, or sign in with a link and add the passkey anew.',
  ],
  passkey_exists: [
    409,
    'The passkey was added before',
    'Nothing was added. Use the passkey that is in the list.',
  ],
  too_many_passkeys: [
    409,
    'The member has too many passkeys',
    `Nothing was added. A member has at most ${MOST_PASSKEYS} passkeys, and adds at most ${MOST_PASSKEYS} within an hour: revoke one that is not used, or wait.`,
  ],
  passkeys_not_possible: [
    409,
    'Browsers allow no passkeys at this address',
    'The operator sets `PUBLIC_URL` to the https address of the service, with the name of a host and not an IP address.',
  ],
  key_not_rotatable: [
    409,
    'The key cannot be rotated',
    'Create a new key. A key that has expired or was revoked stays so, and the key for sign-in links is never shown.',
  ],
  member_exists: [409, 'The address is that of a member', 'Nothing was created. Change that member instead.'],
  last_owner: [409, 'The account needs an owner', 'Nothing was changed. Make another member an owner first.'],
  signature_required: [
    401,
    'The signature of the user id is missing',
    "Send `signature`, the hex HMAC-SHA256 of `customerUserId` that the app's server makes with the identity secret. The app's setting `identityVerification` is on.",
  ],
  invalid_signature: [
    403,
    'The signature of the user id is wrong',
    'Sign exactly the text in `customerUserId`, as UTF-8, with the current identity secret of this app, and send the HMAC-SHA256 in hex.',
  ],
  not_found: [
    404,
    'Not found',
    'Check the path and the ids. The resource does not exist, or it belongs to another account.',
  ],
  no_attributable_click: [
    404,
    'No attributable click',
    'No action needed. The install has no click, or its click is too old or belongs to another device.',
  ],
  no_attribution: [
    404,
    'The device has no attribution',
    'No action needed. The user id is stored and is bound when the install of the device is reported.',
  ],
  method_not_allowed: [405, 'The method is not allowed', 'Use one of the methods in the `Allow` header.'],
  request_timeout: [408, 'The request timed out', 'Send the headers and the body without long pauses.'],
  slug_taken: [
    409,
    'The slug is taken',
    'Choose another slug. Slugs are unique within an app and compared without case.',
  ],
  external_id_taken: [
    409,
    'The external id is taken',
    'Nothing was created. `existingId` is the id that has this `externalId`.',
  ],
  subdomain_taken: [
    409,
    'The link subdomain is taken',
    'Choose another subdomain. When you create an app, you can omit it to have one generated.',
  ],
  too_many_subdomains: [
    409,
    'The app has held too many subdomains',
    'An app keeps every subdomain that it has held, at most 20. Choose one of those.',
  ],
  too_many_apps: [
    409,
    'The account has too many apps',
    'Nothing was created. The operator raises the limit of the account with `tributary accounts limit`.',
  ],
  ambiguous_match: [
    409,
    'Several affiliates match',
    'Clicks of several affiliates came from this address. Send a claim token or a code.',
  ],
  too_many_users: [
    409,
    'The device has too many users',
    'Nothing was stored. A device can have 10 users, whose responses stay the same. Call identify from the device of the user.',
  ],
  identity_secret_missing: [
    409,
    'The app has no identity secret',
    'Create it with `POST /apps/:appId/identity-secret/rotate`, then turn on `identityVerification`.',
  ],
  transfer_not_possible: [
    409,
    'The transfer cannot be stated now',
    'Read the payout again. `sent` follows no statement, `returned` or `withdrawn`; `returned` and `withdrawn` follow `sent` or `return_withdrawn`, which follows `returned`.',
  ],
  mail_not_configured: [
    409,
    'No mail server is configured',
    'Nothing was sent. Copy the link instead, or ask the operator to set `SMTP_URL`.',
  ],
  no_email_address: [
    409,
    'The creator has no e-mail address',
    'Nothing was sent. Set the `email` of the affiliate, or copy the link instead.',
  ],
  no_code_address: [
    409,
    'No code can be mailed to the creator',
    'Nothing was sent. Codes go to an address that has been stored for seven days. The founder sees and sets it, and can set the payee.',
  ],
  payee_code_wrong: [
    409,
    'The code is wrong',
    'Nothing was changed. Enter the code of the latest mail. After five wrong ones, ask for another code.',
  ],
  payee_code_ended: [
    409,
    'The code is not valid any more',
    'Nothing was changed. It was used, replaced, entered wrong too often, or is older than 15 minutes. Ask for another code.',
  ],
  too_many_emails: [
    429,
    'Too many mails',
    'Nothing was sent. The creator, the member or the account has as many as one may have at a time. Wait for `Retry-After` seconds, an hour at most, then send the request again.',
  ],
  payouts_blocked: [
    409,
    'The payouts of the creator are blocked',
    'Nothing was paid. Read why in the payout blocks of the creator, and lift the block first.',
  ],
  payout_run_in_progress: [
    409,
    'A payout run of the app is being drafted or paid',
    'Nothing was drafted. Try again in a moment; while a run is being paid, wait until it has ended, or cancel it.',
  ],
  payout_run_not_possible: [
    409,
    'The payout run cannot be approved',
    'Nothing was paid. It has ended, was not approved in time, or pays nobody. Draft a new one.',
  ],
  another_approver_needed: [
    409,
    'Another key has to approve the payout run',
    'Nothing was paid. The app has `payoutApproval: another_key`: the key that drafted the run cannot approve it, nor one that set a payee or the address of a creator in it. A single export is refused: draft a payout run instead.',
  ],
  payout_run_not_settled: [
    409,
    'The payout run is not settled',
    'Nothing was stated. Its files are written when it is settled; a draft and a cancelled run have none.',
  ],
  payout_report_changed: [
    409,
    'The report states something else by now',
    'Nothing was stated. Somebody has stated something about these payouts since the preview. Read the preview again.',
  ],
  payout_file_erased: [
    409,
    'The bytes of the file were removed',
    'A creator in it was erased. Its hash, its rows and its total stay.',
  ],
  payout_file_not_downloaded: [
    409,
    'A file of a payout run was not downloaded',
    'Nothing was erased. Nobody has downloaded a file that contains the creator, and it is the only list of whom the run pays. `detail` names it: download it, then erase again.',
  ],
  payout_block_not_possible: [
    409,
    'The payouts are blocked already, or not blocked',
    'Nothing was changed. Read the payout blocks of the creator: the latest one is in force.',
  ],
  payee_changed: [
    409,
    'The payee has another version',
    'Nothing was changed. Read the payee of the creator, and send the change again with its `version` as `expectedVersion`.',
  ],
  entry_not_undoable: [
    409,
    'The entry cannot be undone',
    'It was undone already, or it undoes another entry. `undoneByEntryId` and `undoesEntryId` of the entry name the other one. Add a new entry instead.',
  ],
  policy_assigned: [
    409,
    'The policy is assigned',
    'Nothing was changed. The policy is in effect for the app, a group or a creator, or will be. Assign another one there first, and archive it when that one is in effect.',
  ],
  policy_archived: [
    409,
    'The policy is archived',
    'Nothing was changed. An archived policy cannot be assigned. Bring it back first, with `archived: false`.',
  ],
  code_taken: [
    409,
    'The code is taken',
    'Nothing was created. An active code of the app has this value or this id of the provider: `existingId` names it. Deactivate it first.',
  ],
  user_erased: [
    409,
    'The user was erased',
    'Nothing was changed. The id of an erased user cannot be used again.',
  ],
  user_attributed: [
    409,
    'The user belongs to an affiliate already',
    'Nothing was changed. Omit `from`: only later payments of this user can be given to another affiliate. Settle earlier ones with a bonus and a deduction.',
  ],
  user_not_attributed: [
    409,
    'The user is not attributed',
    'Nothing was changed. Name an affiliate: `affiliateId` can only be null for an attributed user.',
  ],
  too_many_payments: [
    409,
    'The user has too many payments that wait',
    'Nothing was changed. Check that the id is that of one person. Omit `from` to attribute later payments only.',
  ],
  payments_wait_for_rate: [
    409,
    'Payments of the user wait for an exchange rate',
    'Nothing was changed: a payment, or a refund or dispute of one, waits for a rate, so what they will earn is unknown. Have the operator import the rate, or omit `from` to attribute later payments only.',
  ],
  too_many_endpoints: [
    409,
    'The app has too many endpoints',
    `An app has at most ${MAX_ENDPOINTS} endpoints, active or not. Delete one of them, or change it.`,
  ],
  endpoint_not_active: [
    409,
    'The endpoint is not active',
    'Nothing was sent. Activate the endpoint (`active: true`), then send again, with a new `Idempotency-Key` if you use one.',
  ],
  reprocess_run_in_progress: [
    409,
    'A reprocess run of the app is in progress',
    'Nothing was requested. Wait for the end of the run that `detail` names, or cancel it.',
  ],
  reprocess_run_not_applicable: [
    409,
    'The reprocess run cannot be applied',
    'Nothing was requested. Apply a dry run that has finished and has something to append.',
  ],
  total_changed: [409, 'The total has changed', 'Nothing was paid. Check the preview, then export again.'],
  idempotency_key_reused: [
    409,
    'The idempotency key was used for another request',
    'Use a new key for each new request. Repeat a key only with the same method, path and body.',
  ],
  idempotency_key_in_use: [
    409,
    'A request with this idempotency key is in progress',
    'Wait for `Retry-After` seconds, then send the same request again to get the response of the first one.',
  ],
  payload_too_large: [
    413,
    'The body is too large',
    'Send at most 1 MiB, and at most 32 KiB to `/clicks` and `/sdk`. Split a bulk call.',
  ],
  body_in_small_parts: [
    400,
    'The body arrives in too many small parts',
    'Send the body with a `Content-Length`, or in chunks of at least 1 KiB.',
  ],
  unsupported_media_type: [
    415,
    'The body is not plain JSON',
    'Send `Content-Type: application/json` and no `Content-Encoding`.',
  ],
  headers_too_large: [
    431,
    'The headers are too large',
    'Send at most 16 KiB for the address and the headers together.',
  ],
  rate_limited: [429, 'Too many requests', 'Wait for `Retry-After` seconds, then send the request again.'],
  internal_error: [
    500,
    'Internal error',
    'Report the `requestId` to the operator, who finds the cause in the log.',
  ],
  unavailable: [
    503,
    'Temporarily unavailable',
    'Wait for `Retry-After` seconds, then send the request again.',
  ],
  not_ready: [503, 'Not ready', 'Wait. `detail` names what is missing; the log has the cause.'],
  payout_not_settled: [
    503,
    'The payout did not finish in time',
    'Nothing was paid, and this request is closed. Send a new one.',
  ],
  payouts_stopped: [
    503,
    'Payouts are stopped',
    'Nothing was paid. The database was restored or copied: the operator has to record the payouts that it has forgotten.',
  ],
} as const satisfies Record<string, readonly [status: number, title: string, advice: string]>;

export type ErrorCode = keyof typeof ERRORS;
