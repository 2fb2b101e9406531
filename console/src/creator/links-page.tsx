import { Group, Stack, Text } from '@mantine/core';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCountOf, formatMoney } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { CopyLine, PageHead } from '../parts.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { api } from './api.ts';
import { KEYS } from './queries.ts';
import type { Creator } from './queries.ts';
import { Share } from './share.tsx';

type Code = NonNullable<Creator['codes']>[number];

function LinkRow({ link, appName }: { readonly link: Schemas['CreatorLink']; readonly appName: string }) {
  const { slug, directUrl } = link;
  return (
    <li className="link-row">
      <Stack gap="xs" style={{ minWidth: 0 }}>
        <Group justify="space-between" gap="xs">
          <Text size="sm">
            Link code <b className="code-text">{slug}</b>
            {!link.active && (
              <Text span size="sm" className="quiet">
                {' '}
                · inactive: it earns nothing
              </Text>
            )}
          </Text>
          <Text size="sm">
            <span className="quiet">{formatCountOf(link.clicks, 'click')} · earned </span>
            <b className="money">{formatMoney(link.earnedCents)}</b>
          </Text>
        </Group>
        <Share link={link} appName={appName} />
        <Text size="sm" className="quiet">
          Leads to {link.destinationUrl}. Users can also enter the link code in the app.
        </Text>
        <details>
          <summary>For people who have the app already</summary>
          <Stack gap={6} mt={6}>
            <Text size="sm" className="quiet">
              This form of the link can open the app directly. The click is then not counted, but the link
              code is.
            </Text>
            <CopyLine text={directUrl} what={`the direct link ${slug}`} />
          </Stack>
        </details>
      </Stack>
    </li>
  );
}

/** Where buyers enter a code, or what sets it. An offer of a store is no code: its name is known only to the founder and the store. */
const CODE_PLACES: Readonly<Record<Exclude<Code['namespace'], keyof typeof OFFERS>, string>> = {
  stripe: 'entered when paying',
  paddle: 'entered when paying',
  attribute: 'entered in the app',
  campaign: 'set by the app',
};

const OFFERS = {
  app_store: {
    store: 'the App Store',
    meaning:
      'A purchase with it counts for you. This is the name of the offer, not what customers type: ask for the code or the address to share.',
  },
  play_store: { store: 'Google Play', meaning: 'A purchase with it counts for you.' },
} as const;

const isOffer = (namespace: Code['namespace']): namespace is keyof typeof OFFERS => namespace in OFFERS;

function CodeRow({ code: { namespace, value } }: { readonly code: Code }) {
  if (!isOffer(namespace))
    return (
      <li>
        <b className="code-text">{value}</b>{' '}
        <Text span size="sm" className="quiet">
          {CODE_PLACES[namespace]}
        </Text>
      </li>
    );
  const { store, meaning } = OFFERS[namespace];
  return (
    <li>
      <Text size="sm">
        Offer “{value}” in {store}
      </Text>
      <Text size="sm" className="quiet">
        {meaning}
      </Text>
    </li>
  );
}

function Codes({ codes }: { readonly codes: readonly Code[] }) {
  return (
    <section
      className="surface part"
      aria-label="Purchase codes"
      style={{ marginBottom: 'var(--mantine-spacing-lg)' }}
    >
      <Text size="sm" fw={600} mb={4}>
        Purchase codes
      </Text>
      <Text size="sm" className="quiet" mb="xs">
        A purchase with one of them counts for you, also without your link.
      </Text>
      <ul className="steps">
        {codes.map((code) => (
          <CodeRow key={`${code.namespace} ${code.value}`} code={code} />
        ))}
      </ul>
    </section>
  );
}

export function LinksPage({ creator }: { readonly creator: Creator }) {
  const links = useList(
    KEYS.links,
    async (cursor) => await read(api.GET('/creator/links', { params: { query: cursor } })),
  );
  return (
    <>
      <PageHead title="Links and codes">
        Share a link, show its QR code, or say its link code. All three count for you.
      </PageHead>
      {creator.codes !== undefined && <Codes codes={creator.codes} />}
      <ListView
        list={links}
        what="your links"
        nothing={<Nothing title="No link yet">You get one from the people who invited you.</Nothing>}
      >
        {(rows) => (
          <ul className="steps">
            {rows.map((link) => (
              <LinkRow key={link.id} link={link} appName={creator.appName} />
            ))}
          </ul>
        )}
      </ListView>
    </>
  );
}
