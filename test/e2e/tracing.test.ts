import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inSpan } from '../../src/config/tracing.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { startTracing } from '../../temporal/tracing.ts';
import type { Tracing } from '../../temporal/tracing.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
}

/** Everything that the collector has received. */
const received: string[] = [];
let collector: Server;
let tracing: Tracing;
let service: TestService;

const spans = (): readonly Span[] =>
  received.flatMap((text) => {
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: readonly { scopeSpans: readonly { spans: readonly Span[] }[] }[];
    };
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  });

beforeAll(async () => {
  collector = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      if (request.url === '/v1/traces') received.push(text);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => {
    collector.listen(0, '127.0.0.1', resolve);
  });
  tracing = startTracing(`http://127.0.0.1:${(collector.address() as AddressInfo).port}/`);
  const file = path.join(projectRoot, 'dist/workflow-bundle-tracing.js');
  service = await startTestService({
    settings: { tracing, workflowBundle: async () => ({ code: await readFile(file, 'utf8') }) },
  });
});
afterAll(async () => {
  await service?.close();
  await tracing?.stop();
  collector?.close();
});

test('one trace leads from the webhook through its workflow and activity to the ledger, without personal data', async () => {
  const founder = await setUpFounder(service);
  const user = await founder.customer();
  await founder.purchase(user, 10);
  const chain = [
    'POST /webhooks/:provider/:customerAppId',
    'StartWorkflow:delivery',
    'RunWorkflow:delivery',
    'StartActivity:processDelivery',
    'RunActivity:processDelivery',
    'writeCommission',
  ];
  /** Returns the spans of the rest of the chain below a span. On a slow machine a step may run twice, so it has several spans. */
  const below = (
    parent: Span | undefined,
    [name, ...rest]: readonly string[],
  ): readonly Span[] | undefined => {
    if (name === undefined) return [];
    const isNext = (span: Span) =>
      span.name === name && (parent === undefined || span.parentSpanId === parent.spanId);
    for (const span of spans().filter(isNext)) {
      const found = below(span, rest);
      if (found !== undefined) return [span, ...found];
    }
    return undefined;
  };
  await eventually('a chain of all spans has arrived', async () => {
    await tracing.flush();
    return below(undefined, chain) !== undefined;
  });
  const found = below(undefined, chain) ?? [];
  expect(found.map(({ name }) => name)).toEqual(chain);
  expect(new Set(found.map(({ traceId }) => traceId)).size).toBe(1);
  const all = received.join('\n');
  expect(all).toContain('"tributary"');
  for (const secret of [user, founder.revenuecatToken, founder.key]) expect(all).not.toContain(secret);
});

test('an error in a span is passed on, and its trace has the class of the error but not its message', async () => {
  class Refused extends Error {
    override readonly name = 'Refused';
  }
  const failing = inSpan('failing', {}, async () => {
    throw new Refused('quotes a value');
  });
  await expect(failing).rejects.toThrow(Refused);
  await tracing.flush();
  const all = received.join('\n');
  expect(all).toContain('"Refused"');
  expect(all).not.toContain('quotes a value');
});

test('a collector that is unavailable delays neither a webhook nor the end of tracing', async () => {
  const founder = await setUpFounder(service);
  collector.closeAllConnections();
  await new Promise((resolve) => {
    collector.close(resolve);
  });
  const { body } = await founder.purchase(await founder.customer(), 10);
  expect(body.commissionId).toMatch(/^com_/);
  const startedAt = Date.now();
  await tracing.stop();
  expect(Date.now() - startedAt).toBeLessThan(3_000);
  // From now on there is no tracer, and work runs without a span.
  await expect(inSpan('none', {}, async () => 'done')).resolves.toBe('done');
});
