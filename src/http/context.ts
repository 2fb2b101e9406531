import type { ParameterizedContext } from 'koa';
import type { AccountId, AppId } from '../domain/ids.ts';

/** State that the middleware of one request shares. */
export interface HttpState {
  requestId: string;
  /** The declared path, without ids, which logs and metrics may show. */
  route?: string;
  accountId?: AccountId;
  appId?: AppId;
}

export type HttpContext = ParameterizedContext<HttpState>;
