import * as z from 'zod';
import { idOf } from './common.ts';

/** What a provider is answered. The specification's two forms, and the one for work that goes on by itself. */
export const webhookAnswer = z.union([
  z.object({
    eventId: idOf('event'),
    commissionId: idOf('commission').nullable(),
    /** Present when the delivery is kept but not done yet: it goes on by itself. */
    pending: z.literal(true).optional(),
    /** Adapty's check of a set-up, in its older form, reads its own text back. */
    adapty_check_response: z.string().optional(),
  }),
  z.object({ duplicate: z.literal(true) }),
]);
