import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';

/** A provider whose exports can be compared. */
export type ReconciledProvider = ProviderName;

/** Every provider by its name, with what the command line needs of it. */
export const PROVIDERS = providers;
