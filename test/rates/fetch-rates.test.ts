import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RequestListener, Server } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fetchRatesFile, RatesAddressWrong, RatesUnavailable } from '../../src/rates/fetch-rates.ts';

let server: Server | undefined;

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => {
    server?.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/rates?token=private`;
}
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => {
    if (server === undefined) resolve(undefined);
    else server.close(resolve);
  });
  server = undefined;
});

async function failureOf(url: string, limits = {}): Promise<Error> {
  const failure = await fetchRatesFile(url, limits).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(RatesUnavailable);
  expect((failure as Error).message).not.toContain('private');
  return failure as Error;
}

describe('fetching rates', () => {
  test('a download returns the bytes that were sent, also after a redirect', async () => {
    const url = await serve((request, response) => {
      if (request.url?.startsWith('/rates') === true) response.writeHead(302, { location: '/moved' }).end();
      else response.end(Buffer.from([0, 255, 1]));
    });
    expect(await fetchRatesFile(url)).toEqual(Buffer.from([0, 255, 1]));
  });

  test.each([404, 403, 410])('the status %d is final, since the URL is wrong', async (status) => {
    const failure = await failureOf(await serve((_, response) => response.writeHead(status).end('gone')));
    expect(failure).toBeInstanceOf(RatesAddressWrong);
    expect(failure.message).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+ responded with ${status}\\.$`));
  });

  test.each([429, 500, 503])('the status %d can be retried', async (status) => {
    const failure = await failureOf(await serve((_, response) => response.writeHead(status).end()));
    expect(failure).not.toBeInstanceOf(RatesAddressWrong);
    expect(failure.message).toContain(`responded with ${status}.`);
  });

  test('a download is aborted at the size limit', async () => {
    let sent = 0;
    const url = await serve((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(10_000))) sent += 10_000;
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    const failure = await failureOf(url, { maxBytes: 50_000 });
    expect(failure.message).toMatch(/sent more than 50000 bytes\.$/);
    expect(sent).toBeLessThan(50_000_000);
  });

  test.each([
    ['no response', () => {}],
    ['half a response', (_: unknown, response: { write: (text: string) => void }) => response.write('Date,')],
  ])('%s within the time limit fails the download', async (_title, listener) => {
    const failure = await failureOf(await serve(listener), { timeoutMs: 300 });
    expect(failure.message).toMatch(/did not send the rates within 0\.3 s\.$/);
  });

  test('a refused connection is reported with its error code', async () => {
    const url = await serve(() => {});
    await new Promise((resolve) => {
      server?.close(resolve);
    });
    expect((await failureOf(url)).message).toMatch(/cannot be reached \(ECONNREFUSED\)\.$/);
    server = undefined;
  });
});
