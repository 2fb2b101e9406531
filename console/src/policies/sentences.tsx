import { Text } from '@mantine/core';
import type { Schemas } from '../api/client.ts';
import { draftOf } from './draft.ts';
import { assumptionWords, BASES } from './words.ts';
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

/** What a version of a policy says: its rules, and what it assumes where the provider states nothing. */
export function TermsInWords({ terms, sentences }: Pick<Schemas['PolicyVersion'], 'terms' | 'sentences'>) {
  return (
    <>
      <Sentences sentences={sentences} />
      {terms.base !== 'gross' && (
        <Text size="xs" className="quiet" mt="xs">
          {BASES[terms.base].meaning} {assumptionWords(draftOf(terms))}
        </Text>
      )}
    </>
  );
}
