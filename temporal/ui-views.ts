/** A list of workflows in the Temporal UI. */
export interface UiView {
  readonly name: string;
  /** The list filter, in the query language of the server. */
  readonly query: string;
}

/** The work of which a step fails. */
export const STUCK_WORK: UiView = { name: 'Stuck work', query: 'DeliveryState STARTS_WITH "stuck:"' };

/** The lists that answer an operator's questions. docs/runbook.md shows them with their links. */
export const UI_VIEWS: readonly UiView[] = [
  STUCK_WORK,
  { name: 'Healed work', query: 'DeliveryState = "healed"' },
  { name: 'Running deliveries', query: 'WorkflowType = "delivery" AND ExecutionStatus = "Running"' },
  { name: 'Slow deliveries', query: 'WorkflowType = "delivery" AND ExecutionDuration > "2s"' },
  { name: 'Running exports', query: 'WorkflowType = "payout" AND ExecutionStatus = "Running"' },
  { name: 'Failed runs', query: 'ExecutionStatus IN ("Failed", "TimedOut", "Terminated")' },
];

/**
 * Returns the address that opens a list in the UI and adds it to the saved views of the browser, under its name. The UI
 * stores saved views in the browser only, and has no other import.
 */
export function viewAddress(uiUrl: string, namespace: string, { name, query }: UiView): string {
  const parameters = `query=${encodeURIComponent(query)}&savedQuery=${encodeURIComponent(name)}`;
  return `${uiUrl.replace(/\/$/, '')}/namespaces/${encodeURIComponent(namespace)}/workflows?${parameters}`;
}
