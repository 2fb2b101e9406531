import { NativeSelect, Stack, Text, TextInput, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, given, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { earnedWords } from '../commissions/earned.tsx';
import { formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { DollarField } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';
import { problemWords } from './draft.ts';
import type { Terms } from './draft.ts';
import { Sentences } from './terms.tsx';
import { STORE_IDS, storeName } from './words.ts';

/** How long the preview waits for the next key, ms. */
const TYPING_MS = 300;
const CENTS = 100;
const MOST_DOLLARS = 1_000_000;

type Example = Schemas['ExamplePayment'];

/** The places of a payment among those of a customer that can be tried. */
const PLACES: Readonly<
  Record<string, { readonly name: string; readonly paymentNumber: number; readonly monthsSinceFirst: number }>
> = {
  first: { name: 'First payment', paymentNumber: 1, monthsSinceFirst: 0 },
  second: { name: 'Second payment, month 2', paymentNumber: 2, monthsSinceFirst: 1 },
  month6: { name: 'Monthly payment, month 6', paymentNumber: 6, monthsSinceFirst: 5 },
  month12: { name: 'Monthly payment, month 12', paymentNumber: 12, monthsSinceFirst: 11 },
  month13: { name: 'Monthly payment, month 13', paymentNumber: 13, monthsSinceFirst: 12 },
  year2: { name: 'Second yearly payment', paymentNumber: 2, monthsSinceFirst: 12 },
  month25: { name: 'Monthly payment, month 25', paymentNumber: 25, monthsSinceFirst: 24 },
};

/** A payment to try the rules with, as it is being entered. */
interface ExampleDraft {
  readonly place: string;
  readonly dollars: Entered;
  readonly store: string;
  readonly product: string;
}

const FIRST_EXAMPLES: readonly ExampleDraft[] = [
  { place: 'first', dollars: 9.99, store: 'app_store', product: '' },
  { place: 'month13', dollars: 9.99, store: 'app_store', product: '' },
  { place: 'first', dollars: 9.99, store: 'stripe', product: '' },
];

const hasPrice = ({ dollars }: Pick<ExampleDraft, 'dollars'>): boolean =>
  Number(dollars) > 0 && Number(dollars) <= MOST_DOLLARS;

function paymentOf({ place, dollars, store, product }: ExampleDraft): Example {
  const { paymentNumber = 1, monthsSinceFirst = 0 } = PLACES[place] ?? {};
  return {
    // A price that is being entered: its result is not shown.
    priceCents: hasPrice({ dollars }) ? Math.round(Number(dollars) * CENTS) : 1,
    store,
    paymentNumber,
    monthsSinceFirst,
    ...(product.trim() === '' ? {} : { productId: product.trim() }),
  };
}

/** Says which rule gave the amount, and of what. */
function earningText(
  { ruleIndex, baseCents, baseEstimated }: Schemas['ExampleEarning'],
  { base, rules }: Terms,
): string {
  if (ruleIndex === null) return 'No rule applies';
  const { percentBps = 0, flatCents } = rules[ruleIndex] ?? {};
  const policy = { base, baseEstimated, ...given({ flatCents }) };
  return `Rule ${ruleIndex + 1}: ${earnedWords({ rateBps: percentBps, baseCents, policy })}`;
}

function ExampleFields({
  example,
  number,
  stores,
  hasProduct,
  result,
  hint,
  onChange,
}: {
  readonly example: ExampleDraft;
  readonly number: number;
  readonly stores: readonly string[];
  readonly hasProduct: boolean;
  readonly result: string;
  readonly hint: string;
  readonly onChange: (change: Partial<ExampleDraft>) => void;
}) {
  return (
    <li className="example" aria-label={`Example ${number}`}>
      <div className="example-fields">
        <NativeSelect
          size="xs"
          className="example-place"
          aria-label={`Payment of example ${number}`}
          value={example.place}
          onChange={(event) => onChange({ place: event.currentTarget.value })}
        >
          {Object.entries(PLACES).map(([place, { name }]) => (
            <option key={place} value={place}>
              {name}
            </option>
          ))}
        </NativeSelect>
        <DollarField
          size="xs"
          aria-label={`Price of example ${number}`}
          min={0.01}
          max={MOST_DOLLARS}
          value={example.dollars}
          onChange={(dollars) => onChange({ dollars })}
        />
        <NativeSelect
          size="xs"
          aria-label={`Store of example ${number}`}
          value={example.store}
          onChange={(event) => onChange({ store: event.currentTarget.value })}
        >
          {stores.map((store) => (
            <option key={store} value={store}>
              {storeName(store)}
            </option>
          ))}
        </NativeSelect>
        {hasProduct && (
          <TextInput
            size="xs"
            className="example-place"
            aria-label={`Product of example ${number}`}
            placeholder="product"
            spellCheck={false}
            value={example.product}
            onChange={(event) => onChange({ product: event.currentTarget.value })}
          />
        )}
      </div>
      <output className="example-result">
        <span className="quiet">{hint}</span>
        <b>{result}</b>
      </output>
    </li>
  );
}

/** What the rules say in sentences, and what a few payments would earn by them. The service computes both. */
export function Preview({
  appId,
  terms,
  problem: missing,
}: {
  readonly appId: string;
  /** Null while the rules are incomplete. */
  readonly terms: Terms | null;
  /** What is missing, as a sentence. Null for nothing. */
  readonly problem: string | null;
}) {
  const [examples, setExamples] = useState(FIRST_EXAMPLES);
  const body = terms === null ? null : { ...terms, payments: examples.map(paymentOf) };
  const [asked] = useDebouncedValue(JSON.stringify(body), TYPING_MS);
  const preview = useQuery({
    queryKey: ['policy-preview', appId, asked],
    queryFn: async () =>
      await read(
        api.POST('/apps/{appId}/policies/preview', {
          params: { path: { appId } },
          body: JSON.parse(asked) as Schemas['PolicyExamples'],
        }),
      ),
    enabled: asked !== 'null',
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
  // What the service refuses of a field is said at the field once the form is sent.
  const [refused] = preview.error instanceof Problem ? preview.error.fields : [];
  const problem = missing ?? (refused === undefined ? null : problemWords(refused));
  const shown = terms === null || preview.error !== null ? undefined : preview.data;
  const named = terms?.rules.flatMap(({ when }) => when?.stores ?? []) ?? [];
  const hasProduct = terms?.rules.some(({ when }) => when?.productIds !== undefined) === true;
  return (
    <Stack gap="md" className="preview" component="section" aria-labelledby="preview">
      <div className="surface part">
        <Title order={2} size="h4" id="preview" mb="xs">
          Preview
        </Title>
        {problem !== null && (
          <Text size="sm" className="quiet">
            {problem}
          </Text>
        )}
        {problem === null && preview.error !== null && (
          <ErrorBox error={preview.error} retry={() => void preview.refetch()} />
        )}
        {shown !== undefined && <Sentences sentences={shown.sentences} />}
        {problem === null && preview.isPending && (
          <Text size="sm" className="quiet">
            Loading …
          </Text>
        )}
      </div>
      <div className="surface">
        <Title order={3} size="h5" className="part-title">
          What payments would earn
        </Title>
        <ul className="examples">
          {examples.map((example, index) => {
            const earning = hasPrice(example) ? shown?.earnings[index] : undefined;
            return (
              <ExampleFields
                key={index}
                example={example}
                number={index + 1}
                stores={[...new Set([...STORE_IDS, ...named])]}
                hasProduct={hasProduct}
                result={earning === undefined ? '–' : formatMoney(earning.amountCents)}
                hint={earning === undefined || terms === null ? '' : earningText(earning, terms)}
                onChange={(change) =>
                  setExamples(
                    examples.map((other) => (other === example ? { ...example, ...change } : other)),
                  )
                }
              />
            );
          })}
        </ul>
      </div>
    </Stack>
  );
}
