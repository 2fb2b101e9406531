import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { MOST_RULES, newRule, unreachableRule } from './draft.ts';
import type { Base, RuleDraft, TermsDraft } from './draft.ts';
import type { FieldErrors } from '../parts/field-errors.tsx';
import { PercentField } from '../parts/number-field.tsx';
import { RuleFields } from './rule-fields.tsx';
import { BASES, storeName } from './words.ts';
import './policies.css';

type ErrorAt = FieldErrors<string>['at'];

/** What counts where no provider states the tax or the fee of a payment. Folded, because the usual values are filled in. */
function Assumptions({
  draft,
  errorAt,
  onChange,
}: {
  readonly draft: TermsDraft;
  readonly errorAt: ErrorAt;
  readonly onChange: (change: Partial<TermsDraft>) => void;
}) {
  const { base, tax, fees } = draft;
  const shares = base === 'proceeds' ? Object.entries(fees) : [];
  const taxField = errorAt('assumed.taxBps');
  const details = useRef<HTMLDetailsElement>(null);
  const isWrong = [taxField, ...shares.map(([store]) => errorAt(`assumed.feeBps.${store}`))].some(
    ({ error }) => error !== null,
  );
  // Before the form gives the focus to a wrong field, which a folded one cannot have.
  useEffect(() => {
    if (isWrong && details.current !== null) details.current.open = true;
  }, [isWrong]);
  return (
    <details className="assumed" ref={details}>
      <summary>If the provider does not state tax{base === 'proceeds' ? ' or store fee' : ''}</summary>
      <Text size="sm" className="quiet" mt={4} mb="sm">
        These shares are taken off instead, and the commission is marked as estimated. The tax is a share of
        the price that the customer pays: 15.97 % for a tax of 19 % that is in it.
        {base === 'proceeds' && ' A fee is a share of the rest.'}
      </Text>
      <div className="shares">
        <PercentField
          size="xs"
          label="Tax"
          value={tax}
          {...taxField}
          onChange={(value) => onChange({ tax: value })}
        />
        {shares.map(([store, fee]) => (
          <PercentField
            key={store}
            size="xs"
            label={`Fee of ${storeName(store)}`}
            value={fee}
            {...errorAt(`assumed.feeBps.${store}`)}
            onChange={(value) => onChange({ fees: { ...fees, [store]: value } })}
          />
        ))}
      </div>
    </details>
  );
}

function moved(rules: readonly RuleDraft[], index: number, by: 1 | -1): RuleDraft[] {
  const next = [...rules];
  next.splice(index + by, 0, ...next.splice(index, 1));
  return next;
}

/** The contents of a version: what a rate applies to, and the rules. */
export function TermsFields({
  draft,
  errorAt,
  onChange,
}: {
  readonly draft: TermsDraft;
  /** Returns the props of a field for its path in the API. */
  readonly errorAt: ErrorAt;
  readonly onChange: (draft: TermsDraft) => void;
}) {
  const { base, rules } = draft;
  const change = (part: Partial<TermsDraft>) => onChange({ ...draft, ...part });
  const unreachable = unreachableRule(rules);
  return (
    <>
      <div className="surface part">
        <Stack gap="sm">
          <NativeSelect
            label="A percentage applies to"
            description={BASES[base].meaning}
            inputWrapperOrder={['label', 'input', 'description']}
            value={base}
            {...errorAt('base')}
            onChange={(event) => change({ base: event.currentTarget.value as Base })}
          >
            {Object.entries(BASES).map(([name, { name: text }]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </NativeSelect>
          {base !== 'gross' && <Assumptions draft={draft} errorAt={errorAt} onChange={change} />}
        </Stack>
      </div>
      <section className="surface" aria-label="Rules">
        <ol className="rules">
          {rules.map((rule, index) => (
            <RuleFields
              key={rule.key}
              rule={rule}
              number={index + 1}
              count={rules.length}
              base={base}
              errorAt={(path) => errorAt(`rules.${index}.${path}`)}
              onChange={(part) =>
                change({ rules: rules.map((other) => (other === rule ? { ...rule, ...part } : other)) })
              }
              onMove={(by) => change({ rules: moved(rules, index, by) })}
              onRemove={() => change({ rules: rules.filter((other) => other !== rule) })}
            />
          ))}
        </ol>
        <div className="rules-end">
          <Group justify="space-between" gap="md" wrap="nowrap">
            <Text size="sm" className="quiet" role="status">
              {unreachable === -1
                ? 'The first rule that applies counts. Without one, a payment earns nothing.'
                : `Rule ${unreachable + 1} never applies, because rule ${unreachable} applies to each payment. Move it up.`}
            </Text>
            <Button
              variant="default"
              size="compact-sm"
              style={{ flexShrink: 0 }}
              disabled={rules.length >= MOST_RULES}
              onClick={() => change({ rules: [...rules, newRule()] })}
            >
              Add a rule
            </Button>
          </Group>
        </div>
      </section>
    </>
  );
}
