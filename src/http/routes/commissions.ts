import { listCommissions } from '../../db/commissions.ts';
import { decodeCursor, presentPage, millisKey } from '../cursors.ts';
import { presentCommission } from '../presenters/commission.ts';
import { route } from '../route.ts';
import { EMPTY_PAGE, filterId } from '../schemas/common.ts';
import * as schemas from '../schemas/commissions.ts';

export const commissionRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/commissions',
    auth: 'account',
    permission: 'read',
    operationId: 'listCommissions',
    summary: 'Lists commissions and reversals, the latest purchase first.',
    query: schemas.commissionsQuery,
    response: { status: 200, schema: schemas.commissionsPage },
    handler: async ({ deps, app, query }) => {
      const filter = { status: query.status ?? null, from: query.from ?? null, to: query.to ?? null };
      const filters = { ...filter, affiliateId: query.affiliateId ?? null };
      const key = { list: 'commissions', appId: app.id, filters };
      const after = decodeCursor(key, millisKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      return presentPage(
        key,
        await listCommissions(deps.sql, app.id, { ...filter, affiliateId }, after, query.limit),
        presentCommission,
      );
    },
  }),
];
