import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const HEADER = 12;
const TYPE_A = 1;

/**
 * Answers DNS questions for the IPv4 addresses of one name, as Docker's resolver does for the containers of a service. Every
 * other question gets an empty answer. Returns the address that it listens on.
 */
export async function startNameServer(
  addressesOf: (name: string) => readonly string[],
): Promise<{ readonly address: string; readonly close: () => void }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let end = HEADER;
    for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
      labels.push(query.toString('latin1', end + 1, end + 1 + length));
      end += 1 + length;
    }
    const type = query.readUInt16BE(end + 1);
    const question = query.subarray(HEADER, end + 5);
    const addresses = type === TYPE_A ? addressesOf(labels.join('.')) : [];
    const header = Buffer.from(query.subarray(0, HEADER));
    // A response without an error, to one question.
    header.writeUInt16BE(0x81_80, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    // The name is that of the question, at offset 12; class IN, no caching.
    const answers = addresses.map((address) =>
      Buffer.from([0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    socket.send(Buffer.concat([header, question, ...answers]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}
