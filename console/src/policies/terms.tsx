import { Text } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import { draftOf } from './draft.ts';
import { assumptionWords } from './words.ts';
import './policies.css';

/** The rules of a policy in the words of the service, in their order. */
export function Sentences({ sentences }: { readonly sentences: readonly string[] }) {
  if (sentences.length === 1) return <Text size="sm">{sentences[0]}</Text>;
  return (
    <ol className="sentences">
      {sentences.map((sentence, index) => (
        <li key={index}>{sentence}</li>
      ))}
    </ol>
  );
}

/** What a version of a policy says: its rules, and what it assumes where the provider states nothing. `base` says what the rates apply to. */
export function TermsInWords({
  terms,
  sentences,
  base,
}: Pick<Schemas['PolicyVersion'], 'terms' | 'sentences'> & { readonly base?: string }) {
  return (
    <>
      <Sentences sentences={sentences} />
      {terms.base !== 'gross' && (
        <Text size="xs" className="quiet" mt="xs">
          {base} {assumptionWords(draftOf(terms))}
        </Text>
      )}
    </>
  );
}
