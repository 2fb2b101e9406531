import type { EmailKeys } from '../domain/email.ts';
import type { Fragment, Sql } from './sql.ts';

/**
 * Mails of either urgency that are in progress at a time, for all accounts that have some together. The others wait in the database, so that
 * thousands at once do not ask again and again.
 */
export const EMAILS_IN_PROGRESS = 100;

/** How long after its attempt was due the relay takes the workflow of a mail for lost, ms. */
const LOST_AFTER_MS = 60_000;

/** What a claim took. */
export interface ClaimedEmails {
  readonly emails: readonly EmailKeys[];
  /** Whether more mails may wait for which there is a place. */
  readonly hasMore: boolean;
}

/** The open mails of an app and urgency, as an index has them. */
const openOfApp = (sql: Sql, appId: Fragment, isUrgent: Fragment) => sql.fragment`
  m.ended_at is null and m.app_id = ${appId} and coalesce(m.expires_at - m.created_at <= interval '1 hour', false) = ${isUrgent}`;

/** The open mails to the members of an account and of an urgency, as an index has them. */
const openOfMembers = (sql: Sql, accountId: Fragment, isUrgent: Fragment) => sql.fragment`
  m.ended_at is null and m.member_id is not null and m.account_id = ${accountId}
  and coalesce(m.expires_at - m.created_at <= interval '1 hour', m.kind = 'passkey_added') = ${isUrgent}`;

/** How many of these mails are in progress, `EMAILS_IN_PROGRESS` at most. */
const inProgressOf = (sql: Sql, open: Fragment, claimMs: number) => sql.fragment`
  select count(*) as in_progress
    from (select from emails m
           where ${open} and m.relay_at > now() and m.next_attempt_at <= now()
             and m.relay_at <= now() + greatest(${claimMs}, ${LOST_AFTER_MS}::float8) * interval '1 millisecond'
           limit ${EMAILS_IN_PROGRESS}) x`;

/** How many of these mails are in progress, and whether some are due. No row without either. */
const stateOf = (sql: Sql, open: Fragment, claimMs: number) => sql.fragment`
  cross join lateral (${inProgressOf(sql, open, claimMs)}) p
  cross join lateral (select exists (select from emails m where ${open} and m.relay_at <= now()) as is_due) d
  where p.in_progress > 0 or d.is_due`;

/**
 * Claims at most `limit` mails that are due and whose workflow may not run: new ones, and those that were claimed `claimMs` ago or whose attempt
 * was due a minute ago. Those whose reader waits, and notices of a new passkey, go first and have places of their own. Starting a workflow that
 * runs does nothing.
 *
 * The places are shared by the accounts that have mails which are due or in progress: each has the same number, at least one. Within an account
 * each app has a share, and the members have one, who come first where the reader waits. So the mails of one account, however many, delay those
 * of the others by what is in progress. Of more than `limit` shares, a claim serves some at random. A mail is in progress from its claim to its
 * attempt; one that waits for a later attempt takes no place.
 *
 * The statement reads a few entries of an index for each app and account with open mails, however many there are.
 */
export async function claimEmails(sql: Sql, claimMs: number, limit: number): Promise<ClaimedEmails> {
  const [owner, ofOwner] = [sql.fragment`o.id`, sql.fragment`u.is_urgent`];
  const [sharer, ofSharer] = [sql.fragment`s.id`, sql.fragment`s.is_urgent`];
  // One row per mail, or one with null for no mail.
  const rows = await sql<{ readonly hasMore: boolean } & (EmailKeys | { readonly emailId: null })>`
    with recursive open_apps (id) as (
      (select m.app_id::text from emails m where m.ended_at is null order by m.app_id limit 1)
      union all
      select (select m.app_id::text from emails m where m.ended_at is null and m.app_id > o.id order by m.app_id limit 1)
        from open_apps o where o.id is not null
    ), open_accounts (id) as (
      (select m.account_id from emails m where m.ended_at is null and m.member_id is not null order by m.account_id limit 1)
      union all
      select (select m.account_id from emails m
               where m.ended_at is null and m.member_id is not null and m.account_id > o.id order by m.account_id limit 1)
        from open_accounts o where o.id is not null
    ), waiting as materialized (
      select o.id, a.account_id::text as account_id, false as is_of_members, u.is_urgent, p.in_progress, d.is_due
        from open_apps o
        join apps a on a.id = o.id
       cross join (values (true), (false)) u (is_urgent)
       ${stateOf(sql, openOfApp(sql, owner, ofOwner), claimMs)}
      union all
      select o.id, o.id, true, u.is_urgent, p.in_progress, d.is_due
        from open_accounts o
       cross join (values (true), (false)) u (is_urgent)
       ${stateOf(sql, openOfMembers(sql, owner, ofOwner), claimMs)}
    ), accounts as materialized (
      select account_id, is_urgent,
             greatest(1, ${EMAILS_IN_PROGRESS}::bigint / count(*) over (partition by is_urgent)) - sum(in_progress)::bigint as places
        from waiting group by account_id, is_urgent
    ), candidates as materialized (
      select w.id, w.is_of_members, w.account_id, w.is_urgent, c.places,
             row_number() over (partition by w.account_id, w.is_urgent order by w.is_of_members and w.is_urgent desc, random()) as number
        from waiting w join accounts c on c.account_id = w.account_id and c.is_urgent = w.is_urgent
       where w.is_due
    ), served as materialized (
      select * from candidates where number <= places order by is_urgent desc, number, random() limit ${limit}
    ), shares as materialized (
      select id, is_of_members, is_urgent,
             greatest(1, least(places / count(*) over (partition by account_id, is_urgent), ${limit}::bigint / count(*) over ())) as share
        from served
    ), of_apps as materialized (
      select e.id, s.id as owner_id, s.is_urgent
        from shares s
       cross join lateral (
         select m.id from emails m
          where ${openOfApp(sql, sharer, ofSharer)} and m.relay_at <= now()
          order by m.relay_at limit s.share for update skip locked) e
       where not s.is_of_members
    ), of_members as materialized (
      select e.id, s.id as owner_id, s.is_urgent
        from shares s
       cross join lateral (
         select m.id from emails m
          where ${openOfMembers(sql, sharer, ofSharer)} and m.relay_at <= now()
          order by m.relay_at limit s.share for update skip locked) e
       where s.is_of_members
    ), claimed as materialized (
      select * from of_apps union all select * from of_members
    ), updated as (
      update emails e set relay_at = greatest(now(), e.next_attempt_at) + ${claimMs} * interval '1 millisecond'
        from claimed c
       where e.id = c.id and e.ended_at is null
      returning e.id as email_id, e.app_id, c.is_urgent
    )
    select u.email_id, u.app_id, u.is_urgent,
           (select count(*) from served) = ${limit}
           or exists (select from shares s
                       where s.share = (select count(*) from claimed c where c.owner_id = s.id and c.is_urgent = s.is_urgent)) as has_more
      from (select) one left join updated u on true`;
  const emails = rows.flatMap((row) =>
    row.emailId === null ? [] : [{ emailId: row.emailId, appId: row.appId, isUrgent: row.isUrgent }],
  );
  return { emails, hasMore: rows[0]?.hasMore ?? false };
}
