import * as z from 'zod';
import { MEMBER_ROLES } from '../domain/members.ts';
import { idOf, orNull, textField } from './fields.ts';

/** The role of a member. */
export const memberRole = z.enum(MEMBER_ROLES).meta({
  description:
    '`owner` may do everything and manages the members; `admin` has the permissions `read`, `write` and `setup`; `finance` has `read` and `payout`; `analyst` has `read`.',
  examples: ['finance'],
});

/** The apps of a member, in a response. */
export const memberAppIds = orNull(
  z.array(idOf('app')).describe('The apps that the member sees. Any other one is a 404.'),
  'Null: all apps of the account, also later ones.',
);

/** An address that says enough to be recognized. */
export const maskedAddress = textField('c•••@example.com', 'The start and the domain of the address.');
