import { TextInput } from '@mantine/core';
import type { TextInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { readNumber } from './read-number.ts';

/** What is entered in a field: a number, empty for nothing, or NaN for a text that is no number. */
export type Entered = number | '';

/** Whether a number is entered. An empty field is not 0. */
export const isNumber = (entered: Entered): boolean => Number.isFinite(entered);

interface NumberFieldProps extends Omit<
  TextInputProps,
  'value' | 'onChange' | 'onBlur' | 'onFocus' | 'type'
> {
  readonly value: Entered;
  readonly onChange: (value: Entered) => void;
  readonly min?: number;
  readonly max?: number;
  /** Number of decimals at most. */
  readonly decimals?: number;
  /** Whether a number is shown with all of its decimals. */
  readonly isFixed?: boolean;
  readonly prefix?: string;
  readonly suffix?: string;
}

/**
 * A field for a number. It never changes what was entered: a number that is too large, and a text that is no number or could mean
 * two, is refused at the field, and a form is not sent with it. Whatever brings the text, a comma and a point are read alike.
 */
export function NumberField({
  value,
  onChange,
  min = 0,
  max = Infinity,
  decimals = 0,
  isFixed = false,
  prefix = '',
  suffix = '',
  error,
  ...rest
}: NumberFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  /** What is being typed, and what it was read as. Shown until the field is left with a number, or the value is changed from elsewhere. */
  const [typed, setTyped] = useState<{ readonly text: string; readonly value: Entered } | null>(null);
  const written = (number: number, digits = isFixed ? decimals : 0) =>
    `${prefix}${Number.isInteger(number) || digits > 0 ? number.toFixed(digits) : number}${suffix}`;
  const isTyped = typed !== null && Object.is(typed.value, value);
  const text = isTyped ? typed.text : isNumber(value) ? written(Number(value)) : '';
  const read = readNumber(text, { decimals, prefix, suffix });
  const limit = (words: string, number: number) =>
    `${words} ${written(number, Number.isInteger(number) ? 0 : decimals)}`;
  const problem =
    typeof read === 'string'
      ? read
      : read === null
        ? null
        : read > max
          ? limit('At most', max)
          : read < min
            ? limit('At least', min)
            : null;
  // The first figures of a number may be below the least one.
  const isBegun = isTyped && typeof read === 'number' && read < min;
  useEffect(() => {
    input.current?.setCustomValidity(problem ?? '');
  }, [problem]);
  return (
    <TextInput
      inputMode={decimals === 0 ? 'numeric' : 'decimal'}
      autoComplete="off"
      {...rest}
      ref={input}
      value={text}
      // What cannot be read says more about it than the form does.
      error={(isBegun ? null : problem) ?? error}
      onChange={({ currentTarget }) => {
        const entered = readNumber(currentTarget.value, { decimals, prefix, suffix });
        const next = entered === null ? '' : typeof entered === 'number' ? entered : Number.NaN;
        setTyped({ text: currentTarget.value, value: next });
        onChange(next);
      }}
      onFocus={({ currentTarget }) => {
        // After the click has placed the caret. What is typed replaces what is there, instead of adding to it.
        setTimeout(() => {
          if (document.activeElement === currentTarget) currentTarget.select();
        }, 0);
      }}
      onBlur={() => {
        // A text that is no number stays, to be corrected.
        if (!Number.isNaN(value)) setTyped(null);
      }}
    />
  );
}

type Unit = 'decimals' | 'prefix' | 'suffix' | 'isFixed';

/** A field for a percentage of 0 to 100. */
export const PercentField = (props: Omit<NumberFieldProps, Unit | 'min' | 'max'>) => (
  <NumberField max={100} decimals={2} suffix=" %" {...props} />
);

/** A field for an amount in US dollars. */
export const DollarField = (props: Omit<NumberFieldProps, Unit>) => (
  <NumberField decimals={2} isFixed prefix="$" {...props} />
);
