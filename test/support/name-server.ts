import { createSocket } from 'node:dgram';

/** A name server on the loopback address. */
export interface NameServer {
  /** Its address and port. */
  readonly address: string;
  /** The names that it was asked for. */
  readonly asked: ReadonlySet<string>;
  readonly close: () => void;
}

const HEADER = 12;
const TYPE_A = 1;

/** Returns the name in a question of DNS, and the position after it. */
function nameIn(question: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = HEADER;
  for (let length = question.readUInt8(at); length > 0; length = question.readUInt8(at)) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

/** Starts a name server for which every name has the address 127.0.0.1, and no other one. */
export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked = new Set<string>();
  socket.on('message', (question, { port, address }) => {
    const { name, end } = nameIn(question);
    asked.add(name);
    const hasAddress = question.readUInt16BE(end) === TYPE_A;
    const header = Buffer.alloc(HEADER);
    question.copy(header, 0, 0, 2);
    // A response without an error, to one question.
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(hasAddress ? 1 : 0, 6);
    // The name of the question, class IN, a minute to live, four bytes.
    const answer = Buffer.from([0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    socket.send([header, question.subarray(HEADER, end + 4), ...(hasAddress ? [answer] : [])], port, address);
  });
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => void socket.close() };
}
