import * as z from 'zod';
import { EXPLANATION_STEPS } from '../../domain/explain-event.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { idOf, textLike } from './common.ts';

export const explanation = z.object({
  eventId: idOf('event'),
  deliveryId: idOf('delivery'),
  source: z.enum(PROVIDER_NAMES),
  steps: z.array(
    z.object({
      step: z.enum(EXPLANATION_STEPS),
      decision: textLike('attributed', 'stable, snake case'),
      explanation: textLike('user-4711 is the user. The device came through First creator by a code.'),
      facts: z
        .record(z.string(), z.unknown())
        .meta({ description: 'what the decision was made from; differs by step', examples: [{}] }),
    }),
  ),
});
