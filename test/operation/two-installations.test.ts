import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let services: TestService[];
let founders: Founder[];

beforeAll(async () => {
  services = [await startTestService(), await startTestService()];
  founders = await Promise.all(services.map(async (service) => await setUpFounder(service)));
});
afterAll(async () => {
  for (const service of services) await service.close();
});

// @promise two-installations
test('two installations in one namespace process their own deliveries and payouts', async () => {
  for (const founder of founders) {
    const user = await founder.customer();
    for (let purchase = 0; purchase < 3; purchase += 1) {
      expect((await founder.purchase(user, 10)).body.commissionId).toMatch(/^com_/);
      expect((await founder.exportCsv()).status).toBe(200);
    }
  }
});
