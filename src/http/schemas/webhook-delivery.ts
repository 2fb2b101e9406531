import * as z from 'zod';
import { providers } from '../../providers/index.ts';
import { idOf } from './common.ts';

/** What providers read in the response to their own test request, such as Adapty's in its older form. */
const setupFields: Readonly<Record<never, z.ZodType>> = Object.fromEntries(
  Object.values(providers).flatMap(({ setupCheck }) =>
    setupCheck === undefined ? [] : [[setupCheck.responseField, z.string().optional()]],
  ),
);

/** What a provider is answered. The specification's two forms, and the one for work that goes on by itself. */
export const webhookAnswer = z.union([
  z.object({
    eventId: idOf('event'),
    commissionId: idOf('commission').nullable(),
    /** Present when the delivery is kept but not done yet: it goes on by itself. */
    pending: z.literal(true).optional(),
    ...setupFields,
  }),
  z.object({ duplicate: z.literal(true) }),
]);
