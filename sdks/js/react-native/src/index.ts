import { createTributary } from './tributary.ts';

export type { StartOptions, Tributary } from './tributary.ts';
export type { Storage } from '../../core/src/index.ts';

export const { start, identify, attribute, applyCode, attributedAffiliateId, reset, setEnabled } =
  createTributary();
