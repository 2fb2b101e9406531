import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { Loaded, together } from '../parts/loaded.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { assignPolicy } from './assign.ts';
import type { Scope } from './assign.ts';
import { canTakeEffect, EffectiveField, effectiveFromOf, insteadOf } from './effective.tsx';
import { before, isOfScope, laterThan } from './order.ts';
import { RaiseOver, shownError } from '../payouts/raise-over.tsx';
import { OwnRates } from './own-rates.tsx';
import { staleAfterTerms, useAssignments, useGroups, usePolicies } from './queries.ts';
import type { AffiliateGroup, Assignment, Policy } from './queries.ts';
import { Sentences } from './terms.tsx';

/** What the policy of a scope goes before. */
const ORDER: Readonly<Record<Scope['kind'], string>> = {
  app: 'It counts for every creator without an own rate, an own policy or a group with a policy.',
  group:
    'It counts for the creators of the group without an own rate or an own policy, instead of that of the app.',
  affiliate: 'It counts instead of the own rate and of the policies of the group and the app.',
};

const NONE = 'none';

/** The field that says to whom a policy is assigned: the app, a group or one creator. */
function ScopeFields({
  appId,
  groups,
  scope,
  onChange,
}: {
  readonly appId: string;
  readonly groups: readonly AffiliateGroup[];
  readonly scope: Scope | null;
  readonly onChange: (scope: Scope | null) => void;
}) {
  const [choice, setChoice] = useState('app');
  const [creator, setCreator] = useState<ChosenCreator | null>(null);
  const choose = (value: string) => {
    setChoice(value);
    const group = groups.find(({ id }) => id === value);
    if (value === 'app') onChange({ kind: 'app' });
    else if (group === undefined) onChange(creator && { kind: 'affiliate', ...creator });
    else onChange({ kind: 'group', id: group.id, name: group.name });
  };
  return (
    <>
      <NativeSelect
        label="Assign to"
        description={ORDER[scope?.kind ?? 'affiliate']}
        value={choice}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value="app">All creators of the app</option>
        {groups.map(({ id, name }) => (
          <option key={id} value={id}>
            The group {name}
          </option>
        ))}
        <option value="creator">One creator …</option>
      </NativeSelect>
      {choice === 'creator' && (
        <CreatorSelect
          appId={appId}
          value={creator}
          onChange={(chosen) => {
            setCreator(chosen);
            onChange(chosen && { kind: 'affiliate', ...chosen });
          }}
        />
      )}
    </>
  );
}

/** Leads to the form of a new policy, which can be assigned once it exists. */
function NewPolicy({ appId }: { readonly appId: string }) {
  return <Link to={`/apps/${appId}/policies/new`}>Create a new policy</Link>;
}

/** The field that chooses one of the policies, or none. */
function PolicyField({
  appId,
  policies,
  scope,
  policyId,
  onChange,
}: {
  readonly appId: string;
  readonly policies: readonly Policy[];
  readonly scope: Scope;
  readonly policyId: string;
  readonly onChange: (policyId: string) => void;
}) {
  const { current, next } = policies.find(({ id }) => id === policyId) ?? {};
  const shown = current ?? next;
  return (
    <Stack gap="xs">
      <NativeSelect
        label="Policy"
        description={ORDER[scope.kind]}
        value={policyId}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {policyId === '' && <option value="">Choose a policy …</option>}
        {policies.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
        <option value={NONE}>No policy of its own</option>
      </NativeSelect>
      <Text size="sm">
        <NewPolicy appId={appId} />
      </Text>
      {shown != null && <Sentences sentences={shown.sentences} />}
      {current === null && next != null && (
        <Text size="sm" className="quiet">
          The policy has no version in effect before {formatInstant(next.effectiveFrom)}.
        </Text>
      )}
      {policyId !== '' && policyId !== NONE && shown == null && (
        <Text size="sm" className="quiet">
          The policy has no version yet, so it has no effect before one is published.
        </Text>
      )}
    </Stack>
  );
}

/** Returns the policy that the form begins with: that of the row, or the only one. Empty: it has to be chosen. */
function firstChoice(policies: readonly Policy[], row: Assignment | undefined): string {
  if (row?.policyId === null) return NONE;
  const of = row?.policyId ?? (policies.length === 1 ? policies[0]?.id : undefined);
  return policies.find(({ id }) => id === of)?.id ?? '';
}

/** Says what is assigned later, which a change before it does not cancel. */
function Later({ rows }: { readonly rows: readonly Assignment[] }) {
  return rows.map(({ policyName, effectiveFrom }) => (
    <Text key={effectiveFrom} size="sm" role="status">
      {policyName === null ? 'The end of the policy' : policyName} still takes effect at{' '}
      {formatInstant(effectiveFrom)}.
    </Text>
  ));
}

/** A change of what a scope earns by. `policy` null: by none of its own. */
interface Change {
  readonly to: Scope;
  readonly from: number | undefined;
  readonly policy: string | null;
}

function Form({
  appId,
  fixedPolicy,
  fixedScope,
  row,
  assignments,
  policies,
  groups,
  onClose,
}: {
  readonly appId: string;
  readonly fixedPolicy: Policy | undefined;
  readonly fixedScope: Scope | undefined;
  /** The assignment that is changed. */
  readonly row: Assignment | undefined;
  readonly assignments: readonly Assignment[];
  readonly policies: readonly Policy[];
  readonly groups: readonly AffiliateGroup[];
  readonly onClose: () => void;
}) {
  const [policyId, setPolicyId] = useState(fixedPolicy?.id ?? firstChoice(policies, row));
  const [scope, setScope] = useState<Scope | null>(fixedScope ?? { kind: 'app' });
  const [effective, setEffective] = useState(() => insteadOf(row?.effectiveFrom));
  const assign = useChange(
    async ({ to, from, policy }: Change) => await assignPolicy(appId, to, policy, from),
    ...staleAfterTerms(appId),
  );
  if (assign.data !== undefined) {
    return (
      <Stack>
        <Text size="sm">The change takes effect at {formatInstant(assign.data.effectiveFrom)}.</Text>
        <OwnRates appId={appId} rates={assign.data.ownRates} />
        <Group justify="flex-end">
          <Button data-autofocus onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    );
  }
  const from = effectiveFromOf(effective);
  const ofScope = scope === null ? [] : assignments.filter((one) => isOfScope(one, scope));
  const cancelled = row?.state === 'scheduled' && effective.kind === 'planned' ? row : undefined;
  const error = shownError(assign.error);
  const send = (change: Change) =>
    assign.mutate(change, {
      onSuccess: ({ ownRates }) => (ownRates.length === 0 || change.policy === null) && onClose(),
    });
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (scope === null || from === null) return;
          send({ to: scope, from, policy: policyId === NONE ? null : policyId });
        }}
      >
        <Stack>
          {fixedPolicy === undefined && scope !== null && (
            <PolicyField
              appId={appId}
              policies={policies}
              scope={scope}
              policyId={policyId}
              onChange={setPolicyId}
            />
          )}
          {fixedScope === undefined && (
            <ScopeFields appId={appId} groups={groups} scope={scope} onChange={setScope} />
          )}
          <EffectiveField draft={effective} onChange={setEffective} />
          {from !== null && <Later rows={laterThan(ofScope, from)} />}
          {error !== null && <ErrorBox error={error} />}
          <Group justify="flex-end">
            {cancelled !== undefined && scope !== null && (
              <Button
                variant="default"
                mr="auto"
                disabled={assign.isPending}
                onClick={() =>
                  assign.mutate(
                    {
                      to: scope,
                      from: cancelled.effectiveFrom,
                      policy: before(ofScope, cancelled)?.policyId ?? null,
                    },
                    { onSuccess: onClose },
                  )
                }
              >
                Undo this change
              </Button>
            )}
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={assign.isPending}
              disabled={scope === null || policyId === '' || !canTakeEffect(effective)}
            >
              {policyId === NONE ? 'Remove the policy' : 'Assign'}
            </Button>
          </Group>
        </Stack>
      </form>
      <RaiseOver
        title="Change what creators earn"
        change={assign}
        onRaised={() => {
          if (assign.variables !== undefined) send(assign.variables);
        }}
      />
    </>
  );
}

function Choices({
  appId,
  policy,
  scope,
  row,
  onClose,
}: {
  readonly appId: string;
  readonly policy: Policy | undefined;
  readonly scope: Scope | undefined;
  readonly row: Assignment | undefined;
  readonly onClose: () => void;
}) {
  const policies = usePolicies(appId);
  const groups = useGroups(appId);
  const assignments = useAssignments(appId);
  return (
    <Loaded reading={together(policies, groups, assignments)} what="the policies">
      {([allPolicies, allGroups, allAssignments]) =>
        policy === undefined && allPolicies.rows.length === 0 ? (
          <Text size="sm">
            There is no policy yet. <NewPolicy appId={appId} />
          </Text>
        ) : (
          <Form
            appId={appId}
            fixedPolicy={policy}
            fixedScope={scope}
            row={row}
            assignments={allAssignments.rows}
            policies={allPolicies.rows}
            groups={allGroups.rows}
            onClose={onClose}
          />
        )
      }
    </Loaded>
  );
}

/** Assigns a policy to a scope. What is given is fixed; the other one is chosen. `row`: the assignment that is changed. */
export function AssignDialog({
  appId,
  policy,
  scope,
  row,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly policy?: Policy;
  readonly scope?: Scope;
  readonly row?: Assignment;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const to = scope === undefined ? '' : scope.kind === 'app' ? ' of the app' : ` of ${scope.name}`;
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={policy === undefined ? `Policy${to}` : `Assign ${policy.name}`}
    >
      {isOpen && <Choices appId={appId} policy={policy} scope={scope} row={row} onClose={onClose} />}
    </Dialog>
  );
}
