import getRawBody from 'raw-body';
import { isProviderName, providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';
import type { HttpContext } from '../context.ts';
import { ApiError, notFound } from '../errors.ts';
import { route } from '../route.ts';
import { webhookAnswer } from '../schemas/webhook-delivery.ts';
import { receiveWebhook } from '../receive-webhook.ts';

const BODY_LIMIT_BYTES = 1024 * 1024;

/** The bytes as they came: signatures are over them, not over what they parse to. */
async function readRawBody(ctx: HttpContext): Promise<Buffer> {
  const length = ctx.request.length;
  try {
    return await getRawBody(ctx.req, {
      limit: BODY_LIMIT_BYTES,
      ...(length === undefined ? {} : { length }),
    });
  } catch (error) {
    const type = typeof error === 'object' && error !== null && 'type' in error ? error.type : undefined;
    if (type === 'entity.too.large') {
      throw new ApiError('payload_too_large', { detail: `At most ${BODY_LIMIT_BYTES} bytes.`, cause: error });
    }
    throw new ApiError('invalid_request', {
      detail: 'The body ended before its announced length.',
      cause: error,
    });
  }
}

/** The field that a provider's test request asks for, if any. */
function setupFieldsOf(provider: ProviderName, body: Buffer): Readonly<Record<string, string>> {
  const check = providers[provider].setupCheck;
  const value = check?.responseTo(body) ?? null;
  return check === undefined || value === null ? {} : { [check.responseField]: value };
}

export const webhookRoutes = [
  route({
    method: 'POST',
    path: '/webhooks/:provider/:customerAppId',
    auth: 'provider',
    permission: null,
    operationId: 'receiveWebhook',
    summary: 'Takes a purchase event of a billing provider',
    errors: ['unauthorized', 'not_found', 'payload_too_large', 'unavailable'],
    response: { status: 200, schema: webhookAnswer },
    handler: async ({ ctx, deps, params, now }) => {
      const { provider = '', customerAppId = '' } = params;
      if (!isProviderName(provider)) throw notFound();
      const body = await readRawBody(ctx);
      const answer = await receiveWebhook(deps, provider, customerAppId, {
        headers: ctx.headers,
        body,
        receivedAt: now,
      });
      const setupFields = setupFieldsOf(provider, body);
      switch (answer.kind) {
        case 'done':
          return { eventId: answer.eventId, commissionId: answer.commissionId, ...setupFields };
        case 'pending':
          return {
            eventId: answer.eventId,
            commissionId: null,
            pending: true as const,
            ...setupFields,
          };
        case 'duplicate':
          return { duplicate: true as const };
        case 'refused':
          throw new ApiError('unauthorized', {
            detail: 'The signature or token of this webhook could not be verified.',
            headers: { 'WWW-Authenticate': 'Bearer' },
          });
      }
    },
  }),
];
