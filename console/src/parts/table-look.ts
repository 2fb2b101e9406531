import { useStored } from './stored.ts';

export type Density = 'normal' | 'compact';

const parseHidden = (stored: unknown): readonly string[] =>
  Array.isArray(stored) ? stored.filter((one) => typeof one === 'string') : [];

const parseDensity = (stored: unknown): Density => (stored === 'compact' ? 'compact' : 'normal');

/** Returns the names of the columns that somebody has hidden in a table, and what changes them. This browser remembers them. */
export const useHiddenColumns = (table: string) => useStored(`tributary-columns:${table}`, parseHidden);

/** Returns how high the rows of all tables are, and what changes it. This browser remembers it. */
export const useDensity = () => useStored('tributary-density', parseDensity);
