import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { RequestFraming } from './request-framing.ts';

/** How much of a body with a length waits for its reader, bytes. */
const UNREAD_BYTES = 64 * 1024;
/**
 * How long, and for how many bytes, a connection stays open after a response before the end of its request. A bulk call that is a
 * little too long gets its 413.
 */
const LINGER_MS = 1_000;
const LINGER_BYTES = 2 * 1024 * 1024;
/**
 * How many small reads of the system a request may take without a wait. Each costs about as much as hundreds of bytes, so before each
 * further one the connection waits for a part of the time that the request has taken, and the system joins what arrives
 * meanwhile: a request takes about a hundred small reads at most, however slowly and in however many packets it arrives.
 */
const FREE_READS = 16;
const SMALL_READ_BYTES = 16 * 1024;
const WAIT_PART = 1 / 8;
const LEAST_WAIT_MS = 5;

/** The part of a socket that reads from the system. */
interface SystemReads {
  readonly reading: boolean;
  readonly readStart: () => void;
  readonly readStop: () => void;
}

/**
 * Returns the reads of a socket. `pause` is not enough: the socket goes on to read up to 16 KiB, and the reader of a body ends the
 * pause.
 */
function readsOf(socket: Socket): SystemReads | undefined {
  const { _handle: reads } = socket as unknown as { readonly _handle?: SystemReads | null };
  return reads ?? undefined;
}

/**
 * What a connection receives, on its way to the parser of Node. Alone, the parser works through all bytes that arrive at once,
 * however many requests or chunks they are. Here it gets one request at a time: the next one after the response to the previous
 * one was passed to the system, and no more of a body than its reader takes. The rest waits with the sender.
 */
class ReceivedBytes {
  readonly #socket: Socket;
  readonly #parse: (bytes: Buffer) => void;
  readonly #framing = new RequestFraming();
  #waiting: Buffer[] = [];
  /** The request that has no response yet. */
  #request: IncomingMessage | null = null;
  #isFeeding = false;
  #hasResponded = false;
  /** Small reads since the last response, and when the first was, ms. */
  #smallReads = 0;
  #firstReadAt = 0;
  /** Ends the wait before the next read; null without one. */
  #untilRead: NodeJS.Timeout | null = null;
  /** How many bytes were ignored while the connection closes; null before. */
  #ignored: number | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    const [parse, ...others] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined || others.length > 0)
      throw new Error('the parser is not the reader of its connection');
    this.#parse = parse;
    socket.off('data', parse);
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.once('close', () => clearTimeout(this.#untilRead ?? undefined));
    socket.destroySoon = () => this.#close();
  }

  /** Whether it has sent a response to all that it has received, and waits for the next request. */
  get isIdle(): boolean {
    return (
      this.#hasResponded && this.#request === null && this.#waiting.length === 0 && this.#framing.isBetween
    );
  }

  /** The parser has read a head. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    if (this.#request !== null) {
      this.#socket.destroy();
      return;
    }
    this.#request = request;
    this.#framing.beginBody(request);
    request.on('resume', () => this.#feed());
    response.once('close', () => {
      if (!request.complete) this.#close();
      this.#request = null;
      this.#hasResponded = true;
      this.#smallReads = 0;
      this.#readOn();
      this.#framing.end();
      // A turn of the event loop for the other connections.
      if (this.#waiting.length > 0) this.#feedInNextTurn();
    });
  }

  #receive(bytes: Buffer): void {
    if (bytes.length < SMALL_READ_BYTES) this.#joinPackets();
    if (this.#ignored === null) {
      this.#waiting.push(bytes);
      this.#feed();
      return;
    }
    this.#ignored += bytes.length;
    if (this.#ignored > LINGER_BYTES) this.#socket.destroy();
  }

  /** Lets the system join the packets that arrive, if there have been many. */
  #joinPackets(): void {
    if (this.#smallReads === 0) this.#firstReadAt = performance.now();
    this.#smallReads += 1;
    if (this.#smallReads <= FREE_READS || this.#untilRead !== null) return;
    readsOf(this.#socket)?.readStop();
    const waitMs = Math.max(LEAST_WAIT_MS, (performance.now() - this.#firstReadAt) * WAIT_PART);
    this.#untilRead = setTimeout(() => this.#readOn(), waitMs);
  }

  #readOn(): void {
    if (this.#untilRead === null) return;
    clearTimeout(this.#untilRead);
    this.#untilRead = null;
    const reads = readsOf(this.#socket);
    // Otherwise the socket has stopped by itself, and starts again when its reader wants more.
    if (reads?.reading === true) reads.readStart();
  }

  #feed(): void {
    // The parser calls the reader of a body, which may call this.
    if (this.#isFeeding) return;
    this.#isFeeding = true;
    for (;;) {
      const [bytes] = this.#waiting;
      if (bytes === undefined || !this.#socket.writable || this.#mustWait()) break;
      const size = this.#framing.cut(bytes);
      if (size === bytes.length) this.#waiting.shift();
      else this.#waiting[0] = bytes.subarray(size);
      this.#parse(size === bytes.length ? bytes : bytes.subarray(0, size));
    }
    this.#isFeeding = false;
    if (!this.#socket.writable) this.#waiting = [];
    else if (this.#waiting.length > 0) this.#wait();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** Waits for the response, or for the reader of the body. */
  #wait(): void {
    this.#socket.pause();
    const request = this.#request;
    // A reader that has begun takes what it has in this turn; another one resumes the request.
    if (request !== null && !request.complete && request.readableFlowing === true) this.#feedInNextTurn();
  }

  #feedInNextTurn(): void {
    setImmediate(() => this.#feed());
  }

  /** Whether the parser gets nothing until the request has its response, or its reader wants more. */
  #mustWait(): boolean {
    const request = this.#request;
    if (request === null) return false;
    if (request.complete) return true;
    return request.readableLength > (this.#framing.isInLength ? UNREAD_BYTES : 0);
  }

  /**
   * Closes the connection after its response. A client that still sends a body would lose the response if the connection were
   * closed at once, so what it sends is ignored for a moment.
   */
  #close(): void {
    const socket = this.#socket;
    if (this.#request === null || this.#request.complete) {
      Socket.prototype.destroySoon.call(socket);
      return;
    }
    if (this.#ignored !== null) return;
    this.#ignored = 0;
    this.#waiting = [];
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(timer));
    socket.once('end', () => socket.destroy());
    socket.end();
    socket.resume();
  }
}

const connections = new WeakMap<Socket, ReceivedBytes>();

interface Started {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
}

// Unlike the event `request`, this is also sent for requests that Node answers itself, such as one with an unknown `Expect`.
subscribe('http.server.request.start', (message) => {
  const { request, response, socket } = message as Started;
  connections.get(socket)?.begin(request, response);
});

/** Makes a server work on one request of a connection at a time, and read a body no faster than its reader. */
export function serveOneAtATime(server: Server): void {
  const open = new Map<Socket, ReceivedBytes>();
  server.on('connection', (socket: Socket) => {
    const bytes = new ReceivedBytes(socket);
    connections.set(socket, bytes);
    open.set(socket, bytes);
    socket.once('close', () => open.delete(socket));
  });
  // That of Node, which `close` calls too, also ends connections in the middle of a response that the client reads slowly.
  server.closeIdleConnections = () => {
    for (const [socket, { isIdle }] of open) if (isIdle) socket.destroy();
  };
}
