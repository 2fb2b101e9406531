import * as z from 'zod';
import type { CreatorTerms, PolicyInEffect } from '../../db/terms.ts';
import { epochMs, orNull, textField } from '../fields.ts';
import { sentences } from '../policy-fields.ts';
import { presentEarns } from './terms.ts';

/** A policy, as its creators see it. */
export const creatorPolicy = z.object({
  name: orNull(textField('Standard', 'The name of the policy.'), 'Null if a policy counts only later.'),
  sentences,
  upcoming: z
    .array(z.object({ from: epochMs('From when on.'), sentences }))
    .describe('What changes later, earliest first.'),
});

type Rates = Parameters<typeof presentEarns>[1];

/** Returns what a creator reads of the own terms. Null if no policy counts, now or later. */
export function presentCreatorPolicy({ current, upcoming }: CreatorTerms, rates: Rates) {
  if (current === null && upcoming.every(({ policy }) => policy === null)) return null;
  return {
    name: current?.policyName ?? null,
    sentences: sentencesOf(current, rates),
    upcoming: upcoming.map(({ from, policy }) => ({ from, sentences: sentencesOf(policy, rates) })),
  };
}

function sentencesOf(inEffect: PolicyInEffect | null, rates: Rates): string[] {
  const { policy, rateBps } = presentEarns(inEffect, rates);
  return policy?.sentences ?? [`${(rateBps ?? 0) / 100} % of the price for each payment.`];
}
