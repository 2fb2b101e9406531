import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AccountId, AppId } from '../domain/ids.ts';

/** State that the middleware of one request shares. */
export interface HttpState {
  requestId: string;
  /** The declared path, without ids, which logs and metrics may show. */
  route?: string;
  accountId?: AccountId;
  appId?: AppId;
}

/** What routes and middleware use of a request and its response: a part of Koa's context, and all that `direct.ts` has. */
export interface HttpContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly request: { readonly length: number | undefined };
  readonly state: HttpState;
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly querystring: string;
  readonly headers: IncomingHttpHeaders;
  /** The client's address, as the trusted proxies report it. */
  readonly ip: string;
  readonly hostname: string;
  readonly cookies: { readonly get: (name: string) => string | undefined };
  status: number;
  body: unknown;
  /** Returns a header of the request; empty without it. */
  get(name: string): string;
  /** Sets headers of the response. */
  set(headers: Readonly<Record<string, string>>): void;
  set(name: string, value: string): void;
  vary(name: string): void;
  /** Returns which of the media types the body has: false for another one, null without a body. */
  is(types: string[]): string | false | null;
  accepts(...types: string[]): string | string[] | false;
  acceptsEncodings(...encodings: string[]): string | string[] | false;
  redirect(url: string): void;
}

/** A part of what is done for a request, around what follows. */
export type Middleware = (ctx: HttpContext, next: () => Promise<unknown>) => Promise<void>;
