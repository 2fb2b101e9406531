import { Text } from '@mantine/core';
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
