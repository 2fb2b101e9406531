import type { CodeNamespace } from '../domain/purchase-codes.ts';
import { PROVIDER_NAMES, providers } from './index.ts';
import type { ProviderName } from './index.ts';

/** Returns how a provider's purchases come to state codes of the namespace. Null: they never do. */
export function codeHintOf(provider: ProviderName, namespace: CodeNamespace): string | null {
  const { codes }: { readonly codes: Readonly<Partial<Record<CodeNamespace, string>>> } = providers[provider];
  return codes[namespace] ?? null;
}

/** Returns what a founder with these providers does so that codes of the namespace arrive, in sentences. */
export function codesArriveBy(namespace: CodeNamespace, connected: readonly ProviderName[]): string {
  const hints = connected.flatMap((name) => codeHintOf(name, namespace) ?? []);
  if (hints.length > 0) return [...new Set(hints)].join(' ');
  const titles = PROVIDER_NAMES.filter((name) => codeHintOf(name, namespace) !== null).map(
    (name) => providers[name].title,
  );
  return `No connected provider states such codes. Connect ${titles.join(' or ')}.`;
}
