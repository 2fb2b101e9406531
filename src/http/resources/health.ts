import * as z from 'zod';
import { ApiError } from '../errors.ts';
import { orNull, textField } from '../fields.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const readiness = z
  .object({
    status: z.enum(['ok', 'degraded']).describe('`degraded`: something optional is missing.'),
    checks: z
      .array(
        z.object({
          name: textField('database', 'What was checked. Stable.'),
          ok: z.boolean().describe('Whether it is available.'),
          detail: orNull(
            textField('Not available. The log of the service has the cause.', 'Where to find the cause.'),
            'Null if it is available.',
          ),
        }),
      )
      .describe('What the service depends on.'),
  })
  .meta({ id: 'Readiness', description: 'What the service has, and what it lacks.' });

/** Addresses and key ids are for the operator: the log and the metrics port have them. Anybody can read this. */
const SEE_LOG = 'The log and GET /readyz on METRICS_PORT have the cause.';

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/healthz',
    caller: anyone({ limitsAddress: false }),
    operationId: 'getHealth',
    summary: 'Returns 200 while the process is running.',
    response: {
      status: 200,
      schema: z
        .object({ status: z.literal('ok').describe('Always `ok`.') })
        .meta({ description: 'The process is running.' }),
    },
    handler: async () => ({ status: 'ok' as const }),
  }),

  route({
    method: 'GET',
    path: '/readyz',
    caller: anyone({ limitsAddress: false }),
    operationId: 'getReadiness',
    summary: 'Returns 200 when the service is ready, and 503 with what is missing otherwise.',
    description:
      '`degraded` means that something optional is missing. The causes are in the log and on METRICS_PORT.',
    errors: ['not_ready'],
    response: { status: 200, schema: readiness },
    handler: async ({ deps }) => {
      const checks = await deps.readiness();
      const missing = checks.filter((check) => !check.ok && !check.optional);
      if (missing.length > 0) {
        throw new ApiError('not_ready', {
          detail: `Not available: ${missing.map(({ name }) => name).join(', ')}. ${SEE_LOG}`,
          headers: { 'Retry-After': '1' },
        });
      }
      return {
        status: checks.every((check) => check.ok) ? ('ok' as const) : ('degraded' as const),
        checks: checks.map(({ name, ok }) => ({ name, ok, detail: ok ? null : `Not available. ${SEE_LOG}` })),
      };
    },
  }),
];
