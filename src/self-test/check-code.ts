import { findLatestCode, findTestedCode, hasArrived } from '../db/code-arrivals.ts';
import type { CodeInUse } from '../db/code-arrivals.ts';
import { codesArriveBy } from '../providers/code-hints.ts';
import type { ProviderName } from '../providers/index.ts';
import { SERVICE_FAULT } from './provider-test.ts';
import type { ProviderTest } from './provider-test.ts';
import type { SelfTestSession } from './session.ts';
import { advice, failed, passed } from './steps.ts';
import type { AppStep } from './steps.ts';
import type { Purchase } from './test-purchase.ts';

function nameOf({
  value,
  namespace,
  externalId,
}: Pick<CodeInUse, 'value' | 'namespace' | 'externalId'>): string {
  return `${value} (${namespace}${externalId === null ? '' : `, ${externalId}`})`;
}

/** Checks that the code of the test purchase was read, and leads to its creator. Nothing is checked of a purchase without one. */
export async function checkCodeRead(test: ProviderTest, { sourceEventId }: Purchase): Promise<void> {
  const step = 'code_read';
  const { session, provider, code } = test;
  if (code === null) return;
  const found = await findTestedCode(session.deps.sql, { appId: session.appId, provider, sourceEventId });
  const name = nameOf(code);
  if (found?.value !== (code.externalId ?? code.value) || found.namespace !== code.namespace) {
    test.add(failed(step, `The purchase had the code ${name}, which was not read.`, SERVICE_FAULT));
    return;
  }
  const { owner } = found;
  if (owner === null) {
    test.add(
      advice(
        step,
        `Its code ${name} was read, and belongs to no creator any more.`,
        'Run the self-test again.',
      ),
    );
    return;
  }
  const read = `Its code ${name} was read as that of ${owner.affiliateName}`;
  switch (owner.affiliateStatus) {
    case 'active':
      test.add(passed(step, `${read}. In a sandbox it binds nobody.`));
      return;
    case 'paused':
      test.add(
        advice(
          step,
          `${read}, who is paused: purchases with it earn nothing.`,
          'Activate the creator, or deactivate the code.',
        ),
      );
      return;
    case 'removed':
      test.add(
        advice(
          step,
          `${read}, who was removed: purchases with it belong to nobody.`,
          'Deactivate the code. Then another creator can have it.',
        ),
      );
  }
}

const NONE_ARRIVED = 'No code arrived yet.';

/** Checks that codes of real purchases arrive, also from a sandbox. Nothing is checked of an app whose purchases attribute by links alone. */
export async function checkPurchaseCodes(
  { deps, appId }: SelfTestSession,
  connected: readonly ProviderName[],
  codes: readonly CodeInUse[],
): Promise<AppStep[]> {
  const step = 'purchase_codes';
  const found = await findLatestCode(deps.sql, appId);
  if (found === undefined) return [];
  const { latest } = found;
  if (latest === null && codes.length === 0) {
    return [
      advice(
        step,
        NONE_ARRIVED,
        'Buy something in a sandbox with a code of a creator, then run the self-test again.',
      ),
    ];
  }
  const came =
    latest &&
    `The latest code of a purchase came at ${new Date(latest.arrivedAt).toISOString()}: ${latest.value} (${latest.namespace})`;
  if (latest?.owner === null) {
    return [
      advice(
        step,
        `${came}. It belongs to no creator.`,
        `Add it to its creator, in the console (Creators) or with POST /apps/${appId}/affiliates/ID/codes.`,
      ),
    ];
  }
  const waiting = codes.filter(({ namespace }) => !hasArrived(namespace, codes));
  if (latest === null || waiting.length > 0) {
    const namespaces = [...new Set(waiting.map(({ namespace }) => namespace))];
    return [
      advice(
        step,
        `${latest === null ? `${NONE_ARRIVED} ` : ''}No purchase has come with a code of these namespaces yet: ${namespaces.join(', ')}.`,
        `${namespaces.map((namespace) => codesArriveBy(namespace, connected)).join(' ')} Buy with one in a sandbox, then run the self-test again.`,
      ),
    ];
  }
  return [passed(step, `${came}, of ${latest.owner.affiliateName}.`, 'advice')];
}
