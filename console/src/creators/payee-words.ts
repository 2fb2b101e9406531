import type { Schemas } from '../api/client.ts';
import { formatInstant } from '../format.ts';

export type Method = Schemas['PayeeVersion']['method'];

export const METHODS: Readonly<Record<Method, string>> = {
  paypal: 'PayPal',
  wise: 'Wise',
  other: 'Another way',
  none: 'No payee',
};

export const PROBLEMS: Readonly<Record<NonNullable<Schemas['PayeeVersion']['recipientProblem']>, string>> = {
  erased: 'The recipient was erased.',
  unreadable: 'The recipient cannot be read at present.',
};

/** Says from when a payee counts, or since when it does. */
export const countsText = (countsFrom: number): string =>
  `${countsFrom > Date.now() ? 'counts from' : 'counts since'} ${formatInstant(countsFrom)}`;
