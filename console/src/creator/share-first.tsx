import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { read } from '../api/client.ts';
import { ErrorBox } from '../parts.tsx';
import { api } from './api.ts';
import type { Creator } from './queries.ts';
import { Share } from './share.tsx';

/** How many links are searched for the first one that works. */
const SEARCHED = 25;

/** The first link that works, ready to be shared: what most creators come for. Its place is kept while it is loaded. */
export function ShareFirst({ creator }: { readonly creator: Creator }) {
  const links = useQuery({
    queryKey: ['first-link'],
    queryFn: async () => await read(api.GET('/creator/links', { params: { query: { limit: SEARCHED } } })),
    staleTime: 60_000,
  });
  if (links.error !== null) return <ErrorBox error={links.error} retry={() => void links.refetch()} />;
  const link = links.data?.items.find(({ active }) => active);
  return (
    <section className="surface share-first" aria-label="Your link">
      <Group justify="space-between" mb="xs">
        <Text size="sm" fw={600}>
          Your link
        </Text>
        <Link className="more" to="/links">
          All links and codes
        </Link>
      </Group>
      {link === undefined ? (
        <Text size="sm" className="quiet">
          {links.data === undefined
            ? 'Loading your link …'
            : 'You have no link that works yet. You get one from the people who invited you.'}
        </Text>
      ) : (
        <Share key={link.id} link={link} appName={creator.appName} />
      )}
    </section>
  );
}
