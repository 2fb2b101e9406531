import { Button, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatAgo, formatCount, formatDate, formatInstant } from '../format.ts';
import { ListView, useList } from '../parts/list.tsx';
import { ErrorBox, Secret } from '../parts.tsx';
import { Section } from './section.tsx';

type Account = Schemas['OperatorAccount'];

/** The service counts the apps of an account up to this number. */
const MOST_APPS = 100;

export function Accounts() {
  const list = useList(
    ['accounts'],
    async (cursor) =>
      await read(api.GET('/operator/accounts', { params: { query: { limit: 20, ...cursor } } })),
    { idOf: ({ id }) => id },
  );
  const link = useMutation({
    mutationFn: async ({ id, name }: Account) => ({
      name,
      ...(await read(
        api.POST('/operator/accounts/{accountId}/sign-in-links', { params: { path: { accountId: id } } }),
      )),
    }),
  });
  return (
    <Section title="Accounts">
      <Stack gap="sm">
        {link.error !== null && <ErrorBox error={link.error} />}
        {link.data !== undefined && (
          <Secret key={link.data.url} text={link.data.url} what="the sign-in link">
            It signs one browser in to “{link.data.name}” until {formatInstant(link.data.expiresAt)}.
          </Secret>
        )}
        <ListView
          list={list}
          what="accounts"
          isFiltered={false}
          nothingYet="The first sign-in link creates an account: npm run -s admin -- console"
          onClearFilters={() => {}}
        >
          {(rows) => (
            <table className="rows">
              <caption className="spoken">Accounts of the installation</caption>
              <thead>
                <tr>
                  <th scope="col">Account</th>
                  <th scope="col" className="number">
                    Apps
                  </th>
                  <th scope="col">Created</th>
                  <th scope="col">Last sign-in</th>
                  <th scope="col">
                    <span className="spoken">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <tr key={row.id}>
                    <td style={{ overflowWrap: 'anywhere' }}>
                      <Text size="sm" fw={600}>
                        {row.name}
                      </Text>
                      <Text size="xs" className="quiet">
                        {row.id}
                      </Text>
                    </td>
                    <td className="number" data-name="Apps">
                      {formatCount(row.apps)}
                      {row.apps >= MOST_APPS ? ' or more' : ''}
                    </td>
                    <td data-name="Created">{formatDate(row.createdAt)}</td>
                    <td data-name="Last sign-in">
                      {row.lastSignInAt === null ? (
                        <span className="quiet">not in the last 30 days</span>
                      ) : (
                        <span title={formatInstant(row.lastSignInAt)}>{formatAgo(row.lastSignInAt)}</span>
                      )}
                    </td>
                    <td>
                      <Button
                        variant="default"
                        size="compact-sm"
                        aria-label={`Create a sign-in link for ${row.name}`}
                        loading={link.isPending && link.variables.id === row.id}
                        onClick={() => link.mutate(row)}
                      >
                        Sign-in link
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </ListView>
      </Stack>
    </Section>
  );
}
