import type { ParameterizedContext } from 'koa';
import type { AccountId, AppId } from '../domain/ids.ts';

/** What the middleware of one request tells each other. */
export interface HttpState {
  requestId: string;
  /** The path as the route declares it, without ids: what logs and metrics may show. */
  route?: string;
  accountId?: AccountId;
  appId?: AppId;
}

export type HttpContext = ParameterizedContext<HttpState>;
