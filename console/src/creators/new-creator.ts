import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useIdempotencyKeys } from '../api/idempotency.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { codeBody } from '../codes/code-fields.tsx';
import type { CodeInput } from '../codes/code-fields.tsx';
import { rememberDestination } from '../links/last-destination.ts';
import { linkBody } from '../links/link-fields.tsx';
import type { LinkInput } from '../links/link-fields.tsx';
import { staleAfterTerms } from '../policies/queries.ts';

/** What is entered of a new creator and their first link. Without a destination there is no link. */
interface NewCreator extends LinkInput {
  readonly name: string;
  readonly email?: string;
  /** Absent: no purchase code now. */
  readonly code?: CodeInput | undefined;
  /** Null: no group. */
  readonly groupId?: string | null;
  /** How the creator gets an invite: by a link to copy, by mail, or not at all. */
  readonly invite?: 'link' | 'mail' | null;
}

type Affiliate = Schemas['ListedAffiliate'] | Schemas['CreatedAffiliate'];
type Link = Schemas['Link'];
type Code = Schemas['Code'];

/** What was created. */
export interface CreatedCreator {
  readonly creator: Affiliate;
  readonly link: Link | null;
  readonly code: Code | null;
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

/** What exists already of a new creator whose creation was refused halfway. */
interface Made {
  readonly creator: Affiliate | null;
  readonly link: Link | null;
  readonly code: Code | null;
  readonly groupId: string | null;
}

const NOTHING: Made = { creator: null, link: null, code: null, groupId: null };

/**
 * Creates a creator with their first link, a purchase code, a group and an invite. What exists after a refusal stays in `made`, so that the next attempt goes
 * on from there, and a call whose answer was lost is repeated with its key: there is one creator, one link and one code.
 */
export function useNewCreator(appId: string) {
  const client = useQueryClient();
  const keyOf = useIdempotencyKeys();
  const [made, setMade] = useState(NOTHING);
  const create = useChange(
    async (input: NewCreator): Promise<CreatedCreator> => {
      const body = {
        name: input.name.trim(),
        ...(input.email === undefined ? {} : { email: input.email.trim() || null }),
      };
      const header = (of: object) => ({ 'Idempotency-Key': keyOf(of) });
      const creator =
        made.creator === null
          ? await read(
              api.POST('/apps/{appId}/affiliates', {
                params: { path: { appId }, header: header(body) },
                body,
              }),
            )
          : await read(
              api.PATCH('/apps/{appId}/affiliates/{affiliateId}', {
                params: { path: { appId, affiliateId: made.creator.id } },
                body,
              }),
            );
      setMade((before) => ({ ...before, creator }));
      // The list has the creator, whatever becomes of the rest.
      void client.invalidateQueries({ queryKey: ['creators', appId] });
      let { link } = made;
      if (link === null && input.destinationUrl.trim() !== '') {
        const linkInput = { affiliateId: creator.id, ...linkBody(input) };
        link = await read(
          api.POST('/apps/{appId}/links', {
            params: { path: { appId }, header: header(linkInput) },
            body: linkInput,
          }),
        );
        setMade((before) => ({ ...before, link }));
        rememberDestination(appId, input.destinationUrl.trim());
      }
      const params = { params: { path: { appId, affiliateId: creator.id } } };
      let { code } = made;
      if (code === null && input.code !== undefined) {
        const codeInput = codeBody(input.code);
        code = await read(
          api.POST('/apps/{appId}/affiliates/{affiliateId}/codes', {
            params: { ...params.params, header: header({ affiliateId: creator.id, ...codeInput }) },
            body: codeInput,
          }),
        );
        setMade((before) => ({ ...before, code }));
      }
      const groupId = input.groupId ?? null;
      if (groupId !== made.groupId) {
        await read(api.PUT('/apps/{appId}/affiliates/{affiliateId}/group', { ...params, body: { groupId } }));
        setMade((before) => ({ ...before, groupId }));
      }
      const at = '/apps/{appId}/affiliates/{affiliateId}/sign-in-links';
      return {
        creator,
        link,
        code,
        invite: input.invite === 'link' ? await read(api.POST(at, params)) : null,
        mailedTo:
          input.invite === 'mail' ? (await read(api.POST(`${at}/send`, params))).maskedRecipient : null,
      };
    },
    KEYS.setup(appId),
    KEYS.links(appId),
    ['codes', appId],
    ...staleAfterTerms(appId),
  );
  return { create, made };
}
