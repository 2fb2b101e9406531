/** @jest-environment <rootDir>/test/jest/isolated.js */
import { expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Runtime } from '@temporalio/worker';
import { pino } from 'pino';
import { freePort } from '../../src/embedded/processes.ts';
import { installSdkMetrics, installSdkRuntime } from '../../temporal/sdk-runtime.ts';

const logger = pino({ level: 'silent' });

// @promise sdk-metrics-port
test("the SDK's metrics move to another port when a program has taken the one that was free", async () => {
  const taker = createServer().listen(0, '127.0.0.1');
  await once(taker, 'listening');
  try {
    const ports = [(taker.address() as AddressInfo).port, await freePort()];
    const [taken] = ports;
    const choosePort = async () => ports.shift() ?? (await freePort());
    const address = await installSdkMetrics(logger, choosePort);
    expect(address).not.toBe(`127.0.0.1:${taken}`);
    expect((await fetch(`http://${address}/metrics`)).status).toBe(200);
    // A second service of the process reads the same metrics.
    expect(await installSdkMetrics(logger, freePort)).toBe(address);
    expect(installSdkRuntime(logger)).toBe(address);
  } finally {
    taker.close();
    // Without a worker or a connection, nothing else ends it.
    await Runtime.instance().shutdown();
  }
});
