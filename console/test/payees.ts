import type { Page } from 'playwright-core';
import { generateAccountKey } from '../../src/db/account-keys.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import type { Permission } from '../../src/domain/keys.ts';
import { insertEarning } from '../../test/support/ledger.ts';
import type { GuardedPage } from './browser.ts';
import type { BrowserSuite, NewFounder } from './suite.ts';

export const DAY_MS = 86_400_000;

/** A founder with a key of some permissions, with the label "Bob", with which the browser signs in. */
export type KeyedFounder = NewFounder & { readonly ownKey: string };

/** Returns what creates founders and creators to whom something is due, and opens the page of the payouts. */
export const payees = ({
  service,
  signedIn,
  post,
  newFounder,
}: Pick<BrowserSuite, 'service' | 'signedIn' | 'post' | 'newFounder'>) => {
  const founderWithKey = async (permissions: readonly Permission[] = PERMISSIONS): Promise<KeyedFounder> => {
    const founder = await newFounder();
    const bob = await generateAccountKey(service.sql, founder.accountId, permissions, 'Bob');
    return { ...founder, ownKey: bob?.key ?? '' };
  };

  /** An amount that is due. Returns the id of the commission. */
  const earnMore = async (founder: NewFounder, affiliateId: string, amountCents: number): Promise<string> => {
    const at = Date.now() - 40 * DAY_MS;
    return await insertEarning(service, founder, {
      affiliateId,
      amountCents,
      occurredAt: at,
      dueAt: at + 30 * DAY_MS,
      matured: true,
    });
  };

  /** An amount in the hold period, for 26 more days. */
  const hold = async (founder: NewFounder, affiliateId: string, amountCents: number): Promise<string> =>
    await insertEarning(service, founder, {
      affiliateId,
      amountCents,
      occurredAt: Date.now() - 5 * DAY_MS,
      dueAt: Date.now() + 26.1 * DAY_MS,
    });

  /** A creator to whom some amounts are due. Returns the id of the creator. */
  const earn = async (founder: NewFounder, name: string, ...cents: readonly number[]): Promise<string> => {
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, { name });
    for (const amountCents of cents) await earnMore(founder, id, amountCents);
    return id;
  };

  const signIn = async (founder: KeyedFounder, options = {}): Promise<GuardedPage> => {
    const guarded = await signedIn(founder.ownKey, options);
    await guarded.page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
    return guarded;
  };

  /** Enters a key that may pay, if the dialog asks for one before its button `next` is shown. */
  const raise = async (page: Page, founder: NewFounder, next: string): Promise<void> => {
    const dialog = page.getByRole('dialog');
    const form = page.getByLabel('Key that may pay');
    const button = dialog.getByRole('button', { name: next });
    await form.or(button).first().waitFor();
    if ((await form.count()) === 0) return;
    await form.fill(founder.key);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await button.waitFor();
  };

  return { founderWithKey, earnMore, hold, earn, signIn, raise };
};
