import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { api, read } from '../api/client.ts';
import { useIdempotencyKeys } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { NoPermission, PageHead } from '../parts.tsx';
import { Loaded, together } from '../parts/loaded.tsx';
import { usePermission } from '../session.ts';
import { draftOf, TEMPLATES } from './draft.ts';
import { PolicyForm } from './policy-form.tsx';
import { publishVersion } from './publish.ts';
import type { Publication } from './publish.ts';
import { staleAfterTerms, usePolicy } from './queries.ts';
import type { Policy, Version } from './queries.ts';

function Form({
  appId,
  policy,
  last,
}: {
  readonly appId: string;
  readonly policy: Policy;
  /** The version that was published last. */
  readonly last: Version | undefined;
}) {
  const navigate = useNavigate();
  const [draft, setDraft] = useState(() =>
    last === undefined ? TEMPLATES.one.begin() : draftOf(last.terms),
  );
  const keyOf = useIdempotencyKeys();
  const page = `/apps/${appId}/policies/${policy.id}`;
  const publish = useChange(
    async (publication: Publication) => await publishVersion(appId, policy.id, publication, keyOf),
    ...staleAfterTerms(appId),
  );
  return (
    <PolicyForm
      appId={appId}
      draft={draft}
      onDraft={setDraft}
      action="Publish the version"
      scheduled={policy.next}
      change={publish}
      onCancel={() => void navigate(page)}
      onPublish={(publication, { onError, release }) =>
        publish.mutate(publication, {
          onSuccess: () => {
            release();
            void navigate(page);
          },
          onError,
        })
      }
    />
  );
}

/** The form once the policy and its last version are known. */
function NewVersion({ appId, policyId }: { readonly appId: string; readonly policyId: string }) {
  const policy = usePolicy(appId, policyId, true);
  const last = useQuery({
    queryKey: ['policy-versions', appId, policyId, 'last'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/policies/{policyId}/versions', {
          params: { path: { appId, policyId }, query: { limit: 1 } },
        }),
      ),
  });
  return (
    <Loaded reading={together(policy, last)} what="the policy">
      {([before, { items }]) => <Form appId={appId} policy={before} last={items[0]} />}
    </Loaded>
  );
}

export default function NewVersionPage() {
  const { appId = '', policyId = '' } = useParams();
  const canRead = usePermission('read');
  const { data } = usePolicy(appId, policyId, canRead);
  return (
    <>
      <Text size="sm">
        <Link to={`/apps/${appId}/policies/${policyId}`}>{data?.name ?? 'The policy'}</Link>
      </Text>
      <PageHead title={data === undefined ? 'New version' : `New version of ${data.name}`}>
        Begins with the rules of the last version. Payments before it takes effect keep the version of their
        day.
      </PageHead>
      {canRead ? (
        <NewVersion key={policyId} appId={appId} policyId={policyId} />
      ) : (
        <NoPermission permission="read" what="policies" />
      )}
    </>
  );
}
