import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { koaBody } from 'koa-body';
import Koa from 'koa';
import postgres from 'postgres';

/** Answers a request with JSON. */
export type PlainHandler = (body: Record<string, string>, sql: postgres.Sql) => Promise<object>;

export interface PlainServer {
  readonly port: number;
  readonly sql: postgres.Sql;
  readonly stop: () => Promise<void>;
}

/** Starts handlers as anybody would write them, each at its path: Koa, koa-body, and a pool of connections. */
export async function startPlainServer(
  databaseUrl: string,
  handlers: Readonly<Record<string, PlainHandler>>,
): Promise<PlainServer> {
  const sql = postgres(databaseUrl, { max: 20, onnotice: () => {} });
  const app = new Koa();
  app.use(koaBody());
  app.use(async (ctx) => {
    const handler = handlers[ctx.path];
    if (handler !== undefined) ctx.body = await handler(ctx.request.body as Record<string, string>, sql);
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sql,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await sql.end();
    },
  };
}
