import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { api, read } from '../api/client.ts';
import { useIdempotencyKeys } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { NoPermission } from '../parts.tsx';
import { usePermission } from '../session.ts';
import { assignPolicy } from './assign.ts';
import type { Scope } from './assign.ts';
import { isSameDraft, TEMPLATES } from './draft.ts';
import { PolicyForm } from './policy-form.tsx';
import { publishVersion } from './publish.ts';
import type { Publication } from './publish.ts';
import { staleAfterTerms, useGroups } from './queries.ts';

type Template = keyof typeof TEMPLATES;
const TEMPLATE_NAMES = Object.keys(TEMPLATES) as Template[];

/**
 * Creates a policy, publishes its first version, and assigns it if a scope is given. An attempt that failed in the middle goes on where
 * it stopped, so that it leaves no second policy.
 */
function useCreatePolicy(appId: string, name: string) {
  const createdId = useRef<string | null>(null);
  const createdName = useRef('');
  const keyOf = useIdempotencyKeys();
  return useChange(
    async ({ scope, ...publication }: Publication & { readonly scope: Scope | null }) => {
      if (createdId.current === null) {
        const { id } = await read(
          api.POST('/apps/{appId}/policies', {
            params: { path: { appId }, header: { 'Idempotency-Key': keyOf({ name }) } },
            body: { name },
          }),
        );
        createdId.current = id;
      } else if (createdName.current !== name) {
        await read(
          api.PATCH('/apps/{appId}/policies/{policyId}', {
            params: { path: { appId, policyId: createdId.current } },
            body: { name },
          }),
        );
      }
      const policyId = createdId.current;
      createdName.current = name;
      await publishVersion(appId, policyId, publication, keyOf);
      if (scope === null) return { policyId, ownRates: [] };
      const { ownRates } = await assignPolicy(appId, scope, policyId, publication.effectiveFrom);
      return { policyId, ownRates };
    },
    ...staleAfterTerms(appId),
  );
}

/** A confirmation that changes nothing on the service. */
const NO_CALL = { error: null, isPending: false } as const;

function NewPolicy({ appId }: { readonly appId: string }) {
  const navigate = useNavigate();
  const groups = useGroups(appId);
  const [template, setTemplate] = useState<Template>('one');
  const [draft, setDraft] = useState(TEMPLATES.one.begin);
  /** The template that waits for an answer, because rules were entered. */
  const [wanted, setWanted] = useState<Template | null>(null);
  const begin = (key: Template) => {
    setTemplate(key);
    setDraft(TEMPLATES[key].begin());
  };
  const choose = (key: Template) => {
    if (isSameDraft(draft, TEMPLATES[template].begin())) begin(key);
    else setWanted(key);
  };
  const [name, setName] = useState('');
  const [scopeId, setScopeId] = useState('');
  const create = useCreatePolicy(appId, name.trim());
  const group = groups.data?.rows.find(({ id }) => id === scopeId);
  const scope: Scope | null =
    scopeId === 'app'
      ? { kind: 'app' }
      : group === undefined
        ? null
        : { kind: 'group', id: group.id, name: group.name };
  return (
    <PolicyForm
      appId={appId}
      draft={draft}
      onDraft={setDraft}
      missing={name.trim() === '' ? [{ path: 'name', message: 'Enter a name.' }] : []}
      action={scope === null ? 'Create the policy' : 'Create and assign'}
      change={create}
      onCancel={() => void navigate(`/apps/${appId}/policies`)}
      isEdited={name !== '' || scopeId !== ''}
      onPublish={(publication, { onError, release }) =>
        create.mutate(
          { ...publication, scope },
          {
            onSuccess: ({ policyId, ownRates }) => {
              release();
              void navigate(`/apps/${appId}/policies/${policyId}`, { state: { ownRates } });
            },
            onError,
          },
        )
      }
      renderBefore={(errorAt) => (
        <div className="surface part">
          <Stack gap="md">
            <TextInput
              label="Name"
              description="Creators see it, too."
              placeholder="Standard"
              required
              withAsterisk={false}
              maxLength={200}
              value={name}
              {...errorAt('name')}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <div role="group" aria-labelledby="begin">
              <Text size="sm" fw={600} id="begin" mb={6}>
                Begin with
              </Text>
              <Group gap="xs">
                {TEMPLATE_NAMES.map((key) => (
                  <Button
                    key={key}
                    variant="default"
                    size="compact-sm"
                    className="template"
                    aria-pressed={template === key}
                    onClick={() => choose(key)}
                  >
                    {TEMPLATES[key].name}
                  </Button>
                ))}
              </Group>
              <Dialog isOpen={wanted !== null} onClose={() => setWanted(null)} title="Replace your rules?">
                {wanted !== null && (
                  <Confirm
                    action="Replace the rules"
                    color="red.9"
                    change={NO_CALL}
                    onConfirm={() => {
                      begin(wanted);
                      setWanted(null);
                    }}
                    onClose={() => setWanted(null)}
                  >
                    “{TEMPLATES[wanted].name}” takes the place of the rules that you entered. The name and the
                    other fields stay.
                  </Confirm>
                )}
              </Dialog>
            </div>
          </Stack>
        </div>
      )}
      after={
        <NativeSelect
          label="Assign to"
          description="You can assign it later, too, also to one creator."
          value={scopeId}
          onChange={(event) => setScopeId(event.currentTarget.value)}
        >
          <option value="">Nobody yet</option>
          <option value="app">All creators of the app</option>
          {groups.data?.rows.map(({ id, name: groupName }) => (
            <option key={id} value={id}>
              The group {groupName}
            </option>
          ))}
        </NativeSelect>
      }
    />
  );
}

export default function NewPolicyPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <Text size="sm">
        <Link to={`/apps/${appId}/policies`}>Policies and groups</Link>
      </Text>
      {canRead ? <NewPolicy key={appId} appId={appId} /> : <NoPermission permission="read" what="policies" />}
    </>
  );
}
