/**
 * A process that posts a message to each URL of its arguments after the first, which is the address of a name server, and prints
 * what became of the attempts. Node reads the authorities that a process trusts when it starts.
 */
import { postWebhook, resolveName } from '../../src/webhooks-out/post.ts';

const [nameServer = '', ...urls] = process.argv.slice(2);
const attempts = urls.map(
  async (url) =>
    await postWebhook({
      url,
      headers: { 'webhook-id': 'msg_1' },
      body: '{}',
      targets: 'any',
      resolve: async (name, signal) => await resolveName(name, signal, [nameServer]),
    }),
);
process.stdout.write(JSON.stringify(await Promise.all(attempts)));
