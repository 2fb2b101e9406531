import * as z from 'zod';
import { KEY_OWNERS } from '../../domain/attributable-key.ts';
import * as enums from '../enum-fields.ts';
import { textField } from '../fields.ts';

/** The key that a person can attribute in place of a user. */
export const attributableKey = z
  .object({
    customerUserId: textField(
      'sub_1',
      'What `POST …/manual-attributions` takes as `customerUserId`: the id of the subscription, or the one that the SDK of the provider made.',
    ),
    keySource: enums.provider.describe('The provider whose id it is.'),
    standsFor: z.enum(KEY_OWNERS).describe('Whose id it is: all its payments belong together.'),
  })
  .meta({
    id: 'AttributableKey',
    description:
      'What a person can attribute of a payment without a user. Absent if a user is known, if the key belongs to somebody already, or did before, and for a payment without a key.',
  });
