import { useRef } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { linkBody } from '../links/link-fields.tsx';
import type { LinkInput } from '../links/link-fields.tsx';

/** What is entered of a new creator and their first link. Without a destination there is no link. */
interface NewCreator extends LinkInput {
  readonly name: string;
  readonly email?: string;
  /** Whether an invite is wanted, and how. */
  readonly invite?: 'link' | 'mail' | null;
}

type Affiliate = Schemas['ListedAffiliate'] | Schemas['CreatedAffiliate'];
type Link = Schemas['Link'];

/** What was created. */
export interface CreatedCreator {
  readonly creator: Affiliate;
  readonly link: Link | null;
  readonly invite: Schemas['CreatorSignInLink'] | null;
  /** The address that an invite is on its way to, in part. */
  readonly mailedTo: string | null;
}

/** Returns the code of a link for a name, such as `ada-lovelace` for Ada Lovelace. Empty where the name has no letters for one. */
export function codeOf(name: string): string {
  const code = name
    .normalize('NFD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);
  return code.length < 2 ? '' : code;
}

/**
 * Creates a creator with their first link and an invite. What exists after a refusal stays, so that the next attempt goes on
 * from there and creates no second creator or link.
 */
export function useNewCreator(appId: string) {
  const made = useRef<{ creator: Affiliate | null; link: Link | null }>({ creator: null, link: null });
  return useChange(
    async (input: NewCreator): Promise<CreatedCreator> => {
      const body = {
        name: input.name.trim(),
        ...(input.email === undefined ? {} : { email: input.email.trim() || null }),
      };
      const { creator: before } = made.current;
      const creator =
        before === null
          ? await read(api.POST('/apps/{appId}/affiliates', { params: { path: { appId } }, body }))
          : await read(
              api.PATCH('/apps/{appId}/affiliates/{affiliateId}', {
                params: { path: { appId, affiliateId: before.id } },
                body,
              }),
            );
      made.current.creator = creator;
      if (input.destinationUrl.trim() !== '') {
        made.current.link ??= await read(
          api.POST('/apps/{appId}/links', {
            params: { path: { appId } },
            body: {
              affiliateId: creator.id,
              ...linkBody(input),
            },
          }),
        );
      }
      const params = { params: { path: { appId, affiliateId: creator.id } } };
      const at = '/apps/{appId}/affiliates/{affiliateId}/sign-in-links';
      return {
        creator,
        link: made.current.link,
        invite: input.invite === 'link' ? await read(api.POST(at, params)) : null,
        mailedTo:
          input.invite === 'mail' ? (await read(api.POST(`${at}/send`, params))).maskedRecipient : null,
      };
    },
    ['creators', appId],
    KEYS.setup(appId),
    KEYS.links(appId),
  );
}
