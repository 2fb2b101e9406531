import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PROVIDER_NAMES } from '../../src/providers/provider.ts';
import type { ProviderName } from '../../src/providers/provider.ts';
import { Founder, setUpFounder } from '../support/founder.ts';
import { fakeSecret } from '../support/provider-fixtures.ts';
import { createFounder, startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

interface Step {
  readonly step: string;
  readonly level: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly fix: string | null;
}
interface Report {
  readonly ok: boolean;
  readonly checkedAt: number;
  readonly providers: readonly {
    readonly provider: ProviderName;
    readonly configured: boolean;
    readonly ok: boolean;
    readonly steps: readonly Step[];
  }[];
  readonly app: readonly Step[];
}

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await service.close();
});

/** A founder whose app has webhooks of these providers set up, for production; and the secrets. */
async function founderOf(
  names: readonly ProviderName[],
  at: Pick<TestService, 'sql' | 'ownUrl'> = service,
): Promise<{ founder: Founder; secrets: Map<ProviderName, string> }> {
  const { accountId, key } = await createFounder(at);
  const founder = new Founder(at.ownUrl ?? '', key, accountId);
  founder.app = await founder.ok('POST', '/apps', { name: 'Test app', commissionRateBps: 2_500 });
  const secrets = new Map<ProviderName, string>();
  for (const name of names) secrets.set(name, await setSecret(founder, name, fakeSecret(name)));
  return { founder, secrets };
}

async function setSecret(founder: Founder, name: ProviderName, secret: string | null): Promise<string> {
  const path = `/apps/${founder.app.id}/webhooks/${name}/secret`;
  const given = { environment: 'production', ...(secret === null ? {} : { secret }) };
  const put = await founder.ok<{ secret?: string }>('PUT', path, given);
  return put.secret ?? secret ?? '';
}

const selfTest = (founder: Founder) => founder.ok<Report>('POST', `/apps/${founder.app.id}/self-test`);

describe('an app that is set up right', () => {
  test('passes every step of all five providers', async () => {
    const { founder } = await founderOf(PROVIDER_NAMES);
    const report = await selfTest(founder);
    console.log(JSON.stringify(report, null, 1));
  });
});
void setUpFounder;
