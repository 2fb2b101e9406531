import { createHmac } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { Webhook } from 'svix';
import { messageBody, signedHeaders } from '../../src/webhooks-out/signature.ts';

// @promise webhooks-out-signed
test('the headers of an attempt are those of the published example of Standard Webhooks', () => {
  // The test vector of the libraries of Standard Webhooks.
  const headers = signedHeaders(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    at: 1_614_265_330_999,
    body: '{"test": 2432232314}',
  });
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

// @promise webhooks-out-rotation
test('an attempt during a rotation has a signature of each secret, the current one first', () => {
  const secrets = ['whsec_Y3VycmVudA==', 'whsec_cHJldmlvdXM='];
  const headers = signedHeaders(secrets, { id: 'msg_1', at: 5_000, body: '{}' });
  const expected = ['current', 'previous'].map(
    (key) => `v1,${createHmac('sha256', key).update('msg_1.5.{}').digest('base64')}`,
  );
  expect(headers['webhook-signature']).toBe(expected.join(' '));
});

// @promise webhooks-out-signed
test('a library of receivers accepts an attempt with the secret, and none that was changed or has another secret', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = messageBody({ type: 'webhook.test', createdAt: Date.now(), data: { endpointId: 'whe_1' } });
  const headers = { ...signedHeaders([secret], { id: 'msg_1', at: Date.now(), body }) };
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'webhook.test' });
  expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
  expect(() => new Webhook(secret).verify(body, { ...headers, 'webhook-id': 'msg_2' })).toThrow();
  expect(() => new Webhook('whsec_b3RoZXI=').verify(body, headers)).toThrow();
});

test('the body of a message is its type, its time and its data', () => {
  const data = { commissionId: 'com_1', amount: '19.99' };
  expect(JSON.parse(messageBody({ type: 'commission.created', createdAt: 1_781_524_800_123, data }))).toEqual(
    {
      type: 'commission.created',
      timestamp: '2026-06-15T12:00:00.123Z',
      data,
    },
  );
});
