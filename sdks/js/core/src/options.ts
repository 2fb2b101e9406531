import type { Storage } from './platform.ts';

declare const HOST: string;

/** Options that every SDK has. */
export interface CommonOptions {
  /** The SDK key of the app (`pk_live_…`). */
  readonly apiKey?: string | undefined;
  /** The base address of the service, if it is not the one built into this release. */
  readonly apiBaseUrl?: string | URL | undefined;
  readonly storage?: Storage | undefined;
  /** Whether a first open without a referral is matched by the address of the device. */
  readonly deferredMatch?: boolean | undefined;
  /** Whether to log each answer. */
  readonly debug?: boolean | undefined;
  /** Takes the log lines instead of the console. */
  readonly logger?: ((line: string) => void) | undefined;
  /** Called when the device is attributed to an affiliate. */
  readonly onAttribution?: ((affiliateId: string) => void) | undefined;
}

/** The option of the platforms where several apps may share a storage. */
export interface AppOptions {
  /**
   * The name of the app, if another app uses the same storage. What is no letter from A to Z, digit, `-` or `_` counts as `_`. The
   * key is no name: a rotated one would begin anew.
   */
  readonly app?: string | undefined;
}

/** The name of the state of an app without a name. */
export const UNNAMED = 'tributary';

/** Returns the name of the state of an app in the storage. */
export const stateName = ({ app }: AppOptions): string =>
  app ? `${UNNAMED}-${app}`.replace(/[^\w-]/g, '_') : UNNAMED;

/** Returns functions that write log lines and never throw. */
export function createLog({ debug, logger }: CommonOptions) {
  const warn = async (line: string) => {
    try {
      await (logger ?? console.warn)(`[tributary] ${line}`);
    } catch {
      // The host app's logger must not break the SDK.
    }
  };
  return { warn: warn as (line: string) => void, debug: debug ? warn : () => {} };
}

/** Returns the key and the host, or undefined with a log line if one is missing. */
export function readTarget(
  { apiKey, apiBaseUrl }: CommonOptions,
  warn: (line: string) => void,
): { readonly apiKey: string; readonly host: string } | undefined {
  const host = String(apiBaseUrl || HOST)
    .trim()
    .replace(/\/+$/, '');
  if (!/^https?:\/\/[^/]/.test(host)) {
    warn('No base address: set apiBaseUrl.');
    return undefined;
  }
  if (!apiKey) {
    warn('No SDK key: set apiKey.');
    return undefined;
  }
  return { apiKey, host };
}
