import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import { KEYS } from '../api/queries.ts';
import { CodesAreOff } from '../codes/codes-are-off.tsx';
import { useNewCreator } from '../creators/new-creator.ts';
import { LinkFields } from '../links/link-fields.tsx';
import type { LinkInput } from '../links/link-fields.tsx';
import { LINK_LABELS, SLUG_TAKEN } from '../links/words.ts';
import { useLeaveGuard } from '../leave/leave-guard.tsx';
import { CopyLine, ErrorBox, Waiting } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { isLoopback } from '../parts/loopback.ts';
import { usePermission } from '../session.ts';
import { QrCode } from './qr.tsx';

function NewCreator({ appId }: { readonly appId: string }) {
  const canWrite = usePermission('write');
  const [name, setName] = useState('');
  const [link, setLink] = useState<LinkInput>({ destinationUrl: '', slug: '' });
  const { create, made } = useNewCreator(appId);
  const errors = useFieldErrors(create.error, { name: 'Name of the creator', ...LINK_LABELS }, SLUG_TAKEN);
  const { question } = useLeaveGuard(
    true,
    () => !create.isSuccess && [name, link.destinationUrl, link.slug].some((text) => text !== ''),
  );
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ name, ...link });
      }}
    >
      {question}
      <Stack gap="sm" maw={460}>
        <TextInput
          label="Name of the creator"
          placeholder="Ada"
          required
          withAsterisk={false}
          maxLength={200}
          value={name}
          {...errors.at('name')}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <LinkFields
          isFixed={made.link !== null}
          value={link}
          errors={errors}
          hint={`Your page in a store, or a page of your own: its whole address.${isLoopback(location.href) ? ' For a trial, https://example.com is enough.' : ''}`}
          onChange={(changed) => setLink({ ...link, ...changed })}
        />
        {errors.rest}
        <Group>
          <Button type="submit" loading={create.isPending} disabled={!canWrite}>
            Create the creator and the link
          </Button>
        </Group>
        {!canWrite && (
          <Text size="sm" className="quiet">
            It needs the permission “write”, which you do not have.
          </Text>
        )}
      </Stack>
    </form>
  );
}

/** Says that a link or a purchase code is enough. */
function EitherDoes({ appId, hasCodes }: { readonly appId: string; readonly hasCodes: boolean }) {
  const creators = <Link to={`/apps/${appId}/creators`}>Creators</Link>;
  return (
    <Text size="sm">
      {hasCodes ? (
        <>
          Your creators have purchase codes, which is enough: sales count without a link and without a click.
          You add a link here, or on the page of a creator under {creators}, if customers shall come by one,
          too.
        </>
      ) : (
        <>
          A link or a purchase code is enough. You add purchase codes, such as promotion codes, on the page of
          a creator under {creators}: sales with them count without a link and without a click.
        </>
      )}
    </Text>
  );
}

export function CreatorStep({
  appId,
  hasCodes,
}: {
  readonly appId: string;
  /** Whether purchase codes attribute sales. */
  readonly hasCodes: boolean;
}) {
  const links = useQuery({
    queryKey: KEYS.links(appId),
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/links', { params: { path: { appId }, query: { limit: 1, active: true } } }),
      ),
  });
  if (links.error !== null) return <ErrorBox error={links.error} retry={() => void links.refetch()} />;
  if (links.data === undefined) return <Waiting what="links" />;
  const [link] = links.data.items;
  if (link === undefined)
    return (
      <Stack gap="md">
        <EitherDoes appId={appId} hasCodes={hasCodes} />
        <NewCreator appId={appId} />
        <CodesAreOff appId={appId} />
      </Stack>
    );
  return (
    <Group gap="xl" align="flex-start">
      <Stack gap="sm" style={{ flex: '1 1 300px' }}>
        <Text size="sm">
          The link of {link.affiliateName} leads to {link.destinationUrl}.
        </Text>
        <CopyLine text={link.url} what="the link" />
        <Text size="sm">
          The link code <b>{link.slug}</b> works too: a user enters it in the app, and the app passes it to
          the SDK.
        </Text>
        <Text size="sm" className="quiet">
          {isLoopback(link.url) ? (
            <>
              <a href={link.url} target="_blank" rel="noreferrer">
                Open the link in this browser
              </a>{' '}
              to count the first click. The address that it leads to contains the claim_token for the next
              step.
            </>
          ) : (
            'Open the link on a phone to count the first click, then install the app there.'
          )}
        </Text>
      </Stack>
      {!isLoopback(link.url) && <QrCode url={link.url} name={link.slug} />}
    </Group>
  );
}
