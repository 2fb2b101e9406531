import type { AppId } from '../../domain/ids.ts';
import type { Fragment, Sql } from '../sql.ts';
import { byStatement } from './check.ts';
import type { LedgerCheck } from './check.ts';

/** The columns that a row and the row that it names must have in common. */
const APP = ['app_id'];
const AFFILIATE = ['app_id', 'affiliate_id'];
const ACCOUNT = ['account_id'];

/** A column with the id of another row, the table of that row, and what both have in common. */
type Reference = readonly [column: string, target: string, shared: readonly string[]];

/** The references of each table with rows of an app, and the column that names one of its rows. */
const REFERENCES: readonly (readonly [table: string, id: string, references: readonly Reference[]])[] = [
  ['clicks', 'id', [['link_id', 'links', AFFILIATE]]],
  ['links', 'id', [['affiliate_id', 'affiliates', APP]]],
  [
    'attributions',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['link_id', 'links', AFFILIATE],
      ['click_id', 'clicks', APP],
      ['code_id', 'codes', AFFILIATE],
    ],
  ],
  [
    'bindings',
    'id',
    [
      ['attribution_id', 'attributions', APP],
      ['counts_with', 'bindings', APP],
    ],
  ],
  [
    'manual_attributions',
    'id',
    [
      ['binding_id', 'bindings', APP],
      ['attribution_id', 'attributions', APP],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
  ['codes', 'id', [['affiliate_id', 'affiliates', APP]]],
  [
    'group_memberships',
    'affiliate_id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['group_id', 'affiliate_groups', APP],
    ],
  ],
  ['policy_versions', 'id', [['policy_id', 'policies', APP]]],
  [
    'policy_assignments',
    'scope_id',
    [
      ['policy_id', 'policies', APP],
      ['group_id', 'affiliate_groups', APP],
      ['affiliate_id', 'affiliates', APP],
    ],
  ],
  [
    'payment_numbers',
    'payment_id',
    [
      ['payment_id', 'payments', APP],
      ['subject_id', 'bindings', APP],
    ],
  ],
  ['events', 'id', [['delivery_id', 'deliveries', APP]]],
  [
    'payments',
    'id',
    [
      ['event_id', 'events', APP],
      ['binding_id', 'bindings', APP],
      ['attribution_id', 'attributions', APP],
      ['duplicate_of', 'payments', APP],
    ],
  ],
  ['payment_users', 'payment_id', [['payment_id', 'payments', APP]]],
  ['payment_user_keys', 'payment_id', [['payment_id', 'payments', APP]]],
  [
    'adjustments',
    'id',
    [
      ['event_id', 'events', APP],
      ['booked_payment_id', 'payments', APP],
    ],
  ],
  [
    'commissions',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['link_id', 'links', AFFILIATE],
      ['event_id', 'events', APP],
      ['payment_id', 'payments', APP],
      ['binding_id', 'bindings', APP],
      ['adjustment_id', 'adjustments', APP],
      ['reverses_commission_id', 'commissions', APP],
      ['duplicate_of_commission_id', 'commissions', APP],
      ['payout_id', 'payouts', AFFILIATE],
      ['entry_id', 'entries', AFFILIATE],
      ['policy_version_id', 'policy_versions', APP],
    ],
  ],
  [
    'revenue_entries',
    'payment_id',
    [
      ['payment_id', 'payments', APP],
      ['affiliate_id', 'affiliates', APP],
      ['link_id', 'links', AFFILIATE],
      ['adjustment_id', 'adjustments', APP],
    ],
  ],
  [
    'entries',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['undoes_entry_id', 'entries', AFFILIATE],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
  ['payouts', 'id', [['affiliate_id', 'affiliates', APP]]],
  [
    'payout_items',
    'commission_id',
    [
      ['payout_id', 'payouts', APP],
      ['commission_id', 'commissions', APP],
    ],
  ],
  [
    'payout_requests',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['payout_id', 'payouts', APP],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
  [
    'payout_blocks',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
  [
    'payees',
    'id',
    [
      ['affiliate_id', 'affiliates', APP],
      ['app_id', 'apps', ACCOUNT],
      ['set_by', 'account_keys', ACCOUNT],
    ],
  ],
  [
    'other_transfers',
    'payout_id',
    [
      ['payout_id', 'payouts', APP],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
  [
    'payout_transfers',
    'id',
    [
      ['payout_id', 'payouts', APP],
      ['app_id', 'apps', ACCOUNT],
      ['key_id', 'account_keys', ACCOUNT],
    ],
  ],
];

const columnsOf = (table: string, columns: readonly string[]) =>
  `(${columns.map((column) => `${table}.${column}`).join(', ')})`;

/**
 * For each table, the search for rows of an app that name a row that does not exist, or one of another app, affiliate or account, up
 * to the id of the app. The driver keeps the text of each part of a statement, so each is made once.
 */
const SEARCHES: readonly TemplateStringsArray[] = REFERENCES.map(([table, id, references]) => {
  const joins = references.map(
    ([column, target], n) => `left join ${target} t${n} on t${n}.id = x.${column}`,
  );
  // What a creator has set belongs to no account.
  const isBroken = references.map(
    ([column, , shared], n) =>
      `x.${column} is not null and ${columnsOf('x', shared)} is not null and ${columnsOf(`t${n}`, shared)} is distinct from ${columnsOf('x', shared)}`,
  );
  const text = [
    `select x.${id}::text from ${table} x ${joins.join(' ')} where (${isBroken.join(' or ')}) and x.app_id = `,
    '',
  ];
  return Object.assign(text, { raw: text });
});

const brokenReferences = (sql: Sql, appId: AppId): Fragment =>
  SEARCHES.map((search) => sql.fragment(search, appId)).reduce(
    (before, next) => sql.fragment`${before} union all ${next}`,
  );

/** References between rows. */
export const REFERENCE_CHECKS: readonly LedgerCheck[] = [
  byStatement(
    'no_row_of_another_app',
    'Every reference of a row exists and belongs to the same app.',
    brokenReferences,
  ),
];
