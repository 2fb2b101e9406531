import type { HttpDeps } from './deps.ts';

/** Returns the page of a workflow in the Temporal UI. Null without `TEMPORAL_UI_URL`. */
export function workflowUrl(temporalUi: HttpDeps['temporalUi'], workflowId: string): string | null {
  if (temporalUi == null) return null;
  const namespace = encodeURIComponent(temporalUi.namespace);
  return `${temporalUi.url}/namespaces/${namespace}/workflows/${encodeURIComponent(workflowId)}`;
}
