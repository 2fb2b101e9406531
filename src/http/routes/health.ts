import { ApiError } from '../errors.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/health.ts';

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/healthz',
    auth: 'none',
    permission: null,
    operationId: 'getHealth',
    summary: 'Answers while the process lives.',
    response: { status: 200, schema: schemas.health },
    handler: async () => ({ status: 'ok' as const }),
  }),

  route({
    method: 'GET',
    path: '/readyz',
    auth: 'none',
    permission: null,
    operationId: 'getReadiness',
    summary: 'Answers 200 when everything that is needed is there, else 503 with what is missing.',
    errors: ['not_ready'],
    response: { status: 200, schema: schemas.readiness },
    handler: async ({ deps }) => {
      const checks = (await deps.readiness()).map(({ name, ok, detail, optional }) => ({
        name,
        ok,
        detail,
        optional,
      }));
      const missing = checks.filter((check) => !check.ok && !check.optional);
      if (missing.length > 0) {
        throw new ApiError('not_ready', {
          detail: missing.map(({ name, detail }) => `${name}: ${detail ?? 'missing'}`).join('; '),
          headers: { 'Retry-After': '1' },
        });
      }
      return {
        status: checks.every((check) => check.ok) ? ('ok' as const) : ('degraded' as const),
        checks: checks.map(({ name, ok, detail }) => ({ name, ok, detail })),
      };
    },
  }),
];
