import { Button, Checkbox, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { CodeFields, codeLabels, isCompleteCode, NO_CODE_YET } from '../codes/code-fields.tsx';
import { CodesAreOff } from '../codes/codes-are-off.tsx';
import { lastDestination } from '../links/last-destination.ts';
import { LinkFields } from '../links/link-fields.tsx';
import type { LinkInput } from '../links/link-fields.tsx';
import { LINK_LABELS, SLUG_TAKEN } from '../links/words.ts';
import { CopyLine, Secret } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';
import { useGroups } from '../policies/queries.ts';
import { useCurrentSession, usePermission } from '../session.ts';
import { IdentityFields } from './identity-fields.tsx';
import type { Identity } from './identity-fields.tsx';
import { codeOf, useNewCreator } from './new-creator.ts';
import type { CreatedCreator } from './new-creator.ts';

/** What a new creator needs, to be copied, and the way on. */
function Created({
  appId,
  created: { creator, link, code, invite, mailedTo },
  onClose,
}: {
  readonly appId: string;
  readonly created: CreatedCreator;
  readonly onClose: () => void;
}) {
  return (
    <Stack>
      <Text size="sm" role="status">
        <bdi>{creator.name}</bdi> is a creator now.
        {mailedTo !== null && ` An invite is on its way to ${mailedTo}.`}
      </Text>
      {link !== null && (
        <div>
          <Text size="sm" fw={500} mb={4}>
            The link
          </Text>
          <CopyLine text={link.url} what="the link" />
        </div>
      )}
      {code !== null && (
        <div>
          <Text size="sm" fw={500} mb={4}>
            The purchase code
          </Text>
          <CopyLine text={code.value} what="the purchase code" />
        </div>
      )}
      {code !== null && <CodesAreOff appId={appId} />}
      {invite !== null && (
        <Secret text={invite.url} what="the invite">
          It opens the creator’s own page, and signs in up to {invite.uses} browsers.
        </Secret>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Done
        </Button>
        <Button component={Link} to={`/apps/${appId}/creators/${creator.id}`}>
          Open the creator
        </Button>
      </Group>
    </Stack>
  );
}

/** Asks for the group of a new creator. Nothing while there are no groups. */
function GroupField({
  appId,
  groupId,
  onChange,
}: {
  readonly appId: string;
  readonly groupId: string | null;
  readonly onChange: (groupId: string | null) => void;
}) {
  const { data } = useGroups(appId);
  if (data === undefined || data.rows.length === 0) return null;
  return (
    <NativeSelect
      label="Group"
      description="The creator earns by the policy of the group, from two minutes on."
      value={groupId ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || null)}
    >
      <option value="">No group</option>
      {data.rows.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </NativeSelect>
  );
}

/** Creates a creator with a link, a purchase code, a group and an invite, all at once. */
export function CreatorSheet({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const { sendsMail = false } = useCurrentSession();
  const canInvite = usePermission('setup');
  const [identity, setIdentity] = useState<Identity>({ name: '', email: '' });
  const [entered, setEntered] = useState<Partial<LinkInput>>({});
  const [wantsCode, setWantsCode] = useState(false);
  const [code, setCode] = useState(NO_CODE_YET);
  const [groupId, setGroupId] = useState<string | null>(null);
  const [wantsInvite, setWantsInvite] = useState(true);
  const { create, made } = useNewCreator(appId);
  const errors = useFieldErrors(
    shownError(create.error),
    { name: 'Name', email: 'E-mail address', ...LINK_LABELS, ...codeLabels(code.namespace) },
    { ...SLUG_TAKEN, code_taken: ['value', 'A creator of the app has this code already.'] },
  );
  const link = { destinationUrl: lastDestination(appId), slug: codeOf(identity.name), ...entered };
  const invite =
    !canInvite || !wantsInvite ? null : sendsMail && identity.email.trim() !== '' ? 'mail' : 'link';
  if (create.data !== undefined) return <Created appId={appId} created={create.data} onClose={onClose} />;
  const send = () =>
    create.mutate({ ...identity, ...link, code: wantsCode ? code : undefined, groupId, invite });
  return (
    <>
      <form
        {...errors.root}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <Stack>
          <IdentityFields
            value={identity}
            errors={errors}
            onChange={(changed) => setIdentity({ ...identity, ...changed })}
          />
          <LinkFields
            isFixed={made.link !== null}
            value={link}
            errors={errors}
            hint="Empty: no link now. A purchase code is enough, too."
            isRequired={false}
            onChange={(changed) => setEntered({ ...entered, ...changed })}
          />
          <Checkbox
            label="Add a purchase code"
            description="A word that customers enter when they buy. It counts without a link, too."
            disabled={made.code !== null}
            checked={wantsCode}
            onChange={(event) => setWantsCode(event.currentTarget.checked)}
          />
          {wantsCode && <CodesAreOff appId={appId} />}
          {wantsCode && (
            <CodeFields
              isFixed={made.code !== null}
              value={code}
              errors={errors}
              onChange={(changed) => setCode({ ...code, ...changed })}
            />
          )}
          <GroupField appId={appId} groupId={groupId} onChange={setGroupId} />
          <Checkbox
            label={invite === 'mail' ? 'Mail an invite' : 'Create an invite'}
            description={
              canInvite
                ? 'A link that signs the creator in to a page with their own earnings.'
                : 'It needs the permission “setup”, which you do not have.'
            }
            disabled={!canInvite}
            checked={canInvite && wantsInvite}
            onChange={(event) => setWantsInvite(event.currentTarget.checked)}
          />
          {errors.rest}
          {!create.isPending && made.creator !== null && (
            <Text size="sm" role="status">
              <bdi>{made.creator.name}</bdi> exists already{made.link !== null && ', with the link'}. Add the
              rest here, or on{' '}
              <Link to={`/apps/${appId}/creators/${made.creator.id}`}>the creator’s page</Link>.
            </Text>
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={wantsCode && !isCompleteCode(code)}>
              Add the creator
            </Button>
          </Group>
        </Stack>
      </form>
      <RaiseOver title="Change what a creator earns" change={create} onRaised={send} />
    </>
  );
}
