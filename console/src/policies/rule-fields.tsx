import { Button, Checkbox, Group, Input, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useId } from 'react';
import type { ReactNode } from 'react';
import type { FieldError } from '../parts/field-errors.tsx';
import { DollarField, NumberField, PercentField } from '../parts/number-field.tsx';
import type { Base, RangeDraft, RuleDraft } from './draft.ts';
import { BASE_WORDS, STORE_IDS, storeName } from './words.ts';

type Condition = 'months' | 'payments' | 'products' | 'stores';

/** What a condition begins with, and the text of the button that adds it. */
const CONDITIONS: Readonly<Record<Condition, { readonly add: string; readonly begin: Partial<RuleDraft> }>> =
  {
    months: { add: 'Months', begin: { months: { from: 1, to: 12 } } },
    payments: { add: 'Payment number', begin: { payments: { from: 1, to: 1 } } },
    products: { add: 'Products', begin: { products: '' } },
    stores: { add: 'Stores', begin: { stores: [] } },
  };
const CONDITION_NAMES = Object.keys(CONDITIONS) as Condition[];

function ConditionBox({
  legend,
  onRemove,
  children,
}: {
  readonly legend: string;
  readonly onRemove: () => void;
  readonly children: ReactNode;
}) {
  return (
    <fieldset className="condition">
      <legend>{legend}</legend>
      <div className="condition-fields">{children}</div>
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        className="plain-button"
        aria-label={`Remove the condition: ${legend.toLowerCase()}`}
        onClick={onRemove}
      >
        <span aria-hidden="true">✕</span>
      </Button>
    </fieldset>
  );
}

/** Returns the props of a field of a rule for its path within the rule. */
type ErrorAt = (path: string) => FieldError;

/** A field that is narrower than what is said about it. */
const narrow = (width: number) => ({ root: { maxWidth: 220 }, wrapper: { width } });

function RangeFields({
  what,
  range,
  fields,
  onChange,
}: {
  readonly what: string;
  readonly range: RangeDraft;
  readonly fields: Readonly<Record<keyof RangeDraft, FieldError>>;
  readonly onChange: (range: RangeDraft) => void;
}) {
  const field = (name: keyof RangeDraft) => (
    <NumberField
      size="xs"
      styles={narrow(84)}
      aria-label={`${name === 'from' ? 'First' : 'Last'} ${what}`}
      placeholder={name === 'from' ? '1' : 'no end'}
      min={1}
      value={range[name]}
      {...fields[name]}
      onChange={(value) => onChange({ ...range, [name]: value })}
    />
  );
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      {field('from')}
      <Text size="sm" lh="30px" style={{ flexShrink: 0 }}>
        to
      </Text>
      {field('to')}
    </Group>
  );
}

function StoreFields({
  stores,
  field: { error, ...named },
  onChange,
}: {
  readonly stores: readonly string[];
  readonly field: FieldError;
  readonly onChange: (stores: readonly string[]) => void;
}) {
  const id = useId();
  const wrong = error === null ? {} : { error: true, 'aria-invalid': true, 'aria-describedby': id };
  return (
    <div className="condition-fields" {...named}>
      {[...new Set([...STORE_IDS, ...stores])].map((store) => (
        <Checkbox
          key={store}
          size="xs"
          label={storeName(store)}
          {...wrong}
          checked={stores.includes(store)}
          onChange={(event) =>
            onChange(
              event.currentTarget.checked ? [...stores, store] : stores.filter((other) => other !== store),
            )
          }
        />
      ))}
      {error !== null && (
        <Input.Error id={id} size="xs" flex="1 0 100%">
          {error}
        </Input.Error>
      )}
    </div>
  );
}

function Conditions({
  rule,
  errorAt,
  onChange,
}: {
  readonly rule: RuleDraft;
  readonly errorAt: ErrorAt;
  readonly onChange: (change: Partial<RuleDraft>) => void;
}) {
  const { months, payments, products, stores } = rule;
  return (
    <>
      {months !== null && (
        <ConditionBox legend="In these months of a customer" onRemove={() => onChange({ months: null })}>
          <RangeFields
            what="month"
            range={months}
            fields={{
              from: errorAt('when.monthsSinceFirst.from'),
              to: errorAt('when.monthsSinceFirst.below'),
            }}
            onChange={(range) => onChange({ months: range })}
          />
        </ConditionBox>
      )}
      {payments !== null && (
        <ConditionBox legend="For these payments of a customer" onRemove={() => onChange({ payments: null })}>
          <RangeFields
            what="payment"
            range={payments}
            fields={{ from: errorAt('when.paymentNumber.from'), to: errorAt('when.paymentNumber.to') }}
            onChange={(range) => onChange({ payments: range })}
          />
        </ConditionBox>
      )}
      {products !== null && (
        <ConditionBox legend="For these products" onRemove={() => onChange({ products: null })}>
          <TextInput
            size="xs"
            aria-label="Products"
            placeholder="pro_monthly, pro_yearly"
            spellCheck={false}
            style={{ flex: 1 }}
            value={products}
            {...errorAt('when.productIds')}
            onChange={(event) => onChange({ products: event.currentTarget.value })}
          />
        </ConditionBox>
      )}
      {stores !== null && (
        <ConditionBox legend="From these stores" onRemove={() => onChange({ stores: null })}>
          <StoreFields
            stores={stores}
            field={errorAt('when.stores')}
            onChange={(chosen) => onChange({ stores: chosen })}
          />
        </ConditionBox>
      )}
    </>
  );
}

function Amount({
  rule,
  base,
  errorAt,
  onChange,
}: {
  readonly rule: RuleDraft;
  readonly base: Base;
  readonly errorAt: ErrorAt;
  readonly onChange: (change: Partial<RuleDraft>) => void;
}) {
  const isPercent = rule.kind === 'percent';
  return (
    <Group gap="xs" align="flex-start">
      <NativeSelect
        aria-label="Earns"
        value={rule.kind}
        onChange={(event) => onChange({ kind: event.currentTarget.value === 'fixed' ? 'fixed' : 'percent' })}
      >
        <option value="percent">A percentage</option>
        <option value="fixed">A fixed amount</option>
      </NativeSelect>
      {isPercent ? (
        <PercentField
          key="percent"
          styles={narrow(104)}
          aria-label="Percentage"
          value={rule.percent}
          {...errorAt('percentBps')}
          onChange={(percent) => onChange({ percent })}
        />
      ) : (
        <DollarField
          key="fixed"
          styles={narrow(104)}
          aria-label="Amount in US dollars"
          min={0.01}
          max={1_000}
          value={rule.dollars}
          {...errorAt('flatCents')}
          onChange={(dollars) => onChange({ dollars })}
        />
      )}
      <Text size="sm" className="quiet" lh="36px">
        {isPercent ? `of the ${BASE_WORDS[base]}` : `at most the ${BASE_WORDS[base]}`}
      </Text>
    </Group>
  );
}

/** One rule: what it gives, and when. */
export function RuleFields({
  rule,
  number,
  count,
  base,
  errorAt,
  onChange,
  onMove,
  onRemove,
}: {
  readonly rule: RuleDraft;
  /** Counted from 1. */
  readonly number: number;
  /** The number of rules. */
  readonly count: number;
  readonly base: Base;
  readonly errorAt: ErrorAt;
  readonly onChange: (change: Partial<RuleDraft>) => void;
  readonly onMove: (by: 1 | -1) => void;
  readonly onRemove: () => void;
}) {
  const unused = CONDITION_NAMES.filter((name) => rule[name] === null);
  const hasConditions = unused.length < CONDITION_NAMES.length;
  const press = (label: string, text: string, isDisabled: boolean, onPress: () => void) => (
    <Button
      variant="subtle"
      color="gray"
      size="compact-sm"
      className="plain-button"
      aria-label={`${label} rule ${number}`}
      disabled={isDisabled}
      onClick={onPress}
    >
      <span aria-hidden="true">{text}</span>
    </Button>
  );
  return (
    <li className="rule" aria-label={`Rule ${number}`}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={600}>
          Rule {number}
          {!hasConditions && (
            <Text span inherit fw={400} className="quiet">
              {number === 1 ? ' · for each payment' : ' · for all other payments'}
            </Text>
          )}
        </Text>
        {count > 1 && (
          <Group gap={0} wrap="nowrap">
            {press('Move up', '↑', number === 1, () => onMove(-1))}
            {press('Move down', '↓', number === count, () => onMove(1))}
            {press('Remove', '✕', false, onRemove)}
          </Group>
        )}
      </Group>
      <Stack gap="sm" mt="xs">
        <Amount rule={rule} base={base} errorAt={errorAt} onChange={onChange} />
        {rule.kind === 'fixed' && (
          <Checkbox
            size="xs"
            label={`In full, even if the ${BASE_WORDS[base]} ${base === 'proceeds' ? 'are' : 'is'} smaller`}
            description="A payment may then cost you more than it brings. Publishing asks for a key that may pay."
            checked={rule.aboveBase}
            onChange={(event) => onChange({ aboveBase: event.currentTarget.checked })}
          />
        )}
        <Conditions rule={rule} errorAt={errorAt} onChange={onChange} />
        {unused.length > 0 && (
          <Group gap={6} role="group" aria-label={`Add a condition to rule ${number}`}>
            <Text size="xs" className="quiet">
              {hasConditions ? 'And only for' : 'Only for'}
            </Text>
            {unused.map((name) => (
              <Button
                key={name}
                variant="default"
                size="compact-xs"
                onClick={() => onChange(CONDITIONS[name].begin)}
              >
                + {CONDITIONS[name].add}
              </Button>
            ))}
          </Group>
        )}
      </Stack>
    </li>
  );
}
