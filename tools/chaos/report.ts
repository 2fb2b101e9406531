import { FAULT_KINDS, inWords, KINDS } from './fault-kinds.ts';
import type { KindOfFault } from './fault-kinds.ts';
import type { TriedFault } from './faults.ts';
import type { Recovery } from './probes.ts';

/** How long the slowest of the three took at the slowest process, ms. */
const slowestMs = (recoveries: readonly Recovery[]) =>
  Math.max(...recoveries.map(({ readyMs, webhookMs, exportMs }) => Math.max(readyMs, webhookMs, exportMs)));

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

const seconds = (ms: number) => (ms / 1_000).toFixed(1);

/**
 * Returns a line for each kind of fault: how often it was tried, when ready, webhook and export succeeded at every process
 * again, and whether the service said what it must.
 */
export function faultTable(tried: readonly TriedFault[]): string[] {
  const rows = FAULT_KINDS.flatMap((kind) => {
    const mine = tried.filter((fault) => fault.kind === kind);
    if (mine.length === 0) return [];
    const most = (part: (recovery: Recovery) => number) =>
      seconds(Math.max(...mine.flatMap(({ recoveries }) => recoveries.map(part))));
    const all = mine.map(({ recoveries }) => slowestMs(recoveries));
    const before = median(mine.map(({ calm }) => slowestMs(calm)));
    const beats = mine.flatMap((fault) => fault.beats);
    const asked = mine.filter(({ wasAsked }) => wasAsked);
    const said =
      asked.length === 0
        ? 'too short to be noticed'
        : `${asked.filter(({ missing }) => missing.length === 0).length} of ${asked.length}: ${inWords(KINDS[kind].says)}`;
    return [
      [
        kind,
        `${mine.length}`,
        seconds(mine.reduce((sum, { lastsMs }) => sum + lastsMs, 0)),
        seconds(before),
        most(({ readyMs }) => readyMs),
        most(({ webhookMs }) => webhookMs),
        most(({ exportMs }) => exportMs),
        most(({ temporalMs }) => temporalMs),
        seconds(median(all)),
        seconds(Math.max(...all)),
        `${beats.filter(({ isAccepted }) => isAccepted).length} of ${beats.length}`,
        seconds(Math.max(0, ...beats.map(({ tookMs }) => tookMs))),
        said,
      ],
    ];
  });
  const head = [
    'fault',
    'times',
    's in all',
    'ready',
    'webhook',
    'export',
    'median',
    'max',
    'probes',
    'slowest',
    'said',
  ];
  const table = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  const all = tried.map(({ recoveries }) => slowestMs(recoveries));
  if (all.length === 0) return [];
  return [
    'seconds from the end of a fault until every process was ready, accepted a webhook and paid an export:',
    ...lines.map((line) => line.trimEnd()),
    `all faults: median ${seconds(median(all))} s, max ${seconds(Math.max(...all))} s`,
  ];
}

/** How many times the time of the same calls before the fault is added to the limit: the machine may be busy. */
const CALM_TIMES = 5;

/** Returns what the service did not say while a fault lasted, and the faults from which it was not back in time. */
export function faultProblems(tried: readonly TriedFault[], limitMs: number): string[] {
  return tried.flatMap(({ kind, lastsMs, missing, recoveries, calm }, n) => {
    const name = `fault ${n + 1}, ${kind} for ${seconds(lastsMs)} s`;
    const { extraMs = 0 }: KindOfFault = KINDS[kind];
    const allowedMs = limitMs + extraMs + CALM_TIMES * slowestMs(calm);
    const late = recoveries.flatMap(({ process, readyMs, webhookMs, exportMs, temporalMs }) =>
      Object.entries({
        ready: readyMs,
        webhook: webhookMs,
        export: exportMs - Math.min(temporalMs, exportMs),
      })
        .filter(([, ms]) => ms > allowedMs)
        .map(
          ([what, ms]) =>
            `${name}: process ${process} was back (${what}) after ${seconds(ms)} s, more than ${seconds(allowedMs)} s`,
        ),
    );
    return [...missing.map((text) => `${name}: ${text}`), ...late];
  });
}
