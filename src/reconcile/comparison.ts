import type { LikelyCause } from '../domain/likely-causes.ts';
import type { AppId } from '../domain/ids.ts';
import type { Finding, FindingKind } from '../domain/reconcile-findings.ts';
import type { ProviderName } from '../providers/index.ts';
import type { Payload } from '../providers/shared/sample.ts';

export interface ComparisonRequest {
  readonly appId: AppId;
  readonly provider: ProviderName;
  readonly path: string;
  /** Epoch ms, half-open. Null: the range of the rows. */
  readonly from: number | null;
  readonly to: number | null;
  /** Whether to look only for what the export has and the service lacks. */
  readonly isOneWay: boolean;
  /** Whether to list each payment that earned nothing. They are always counted. */
  readonly listsUnattributed: boolean;
  /** Whether events may be made of payments of a store whose ids are not known to be those of the webhooks. */
  readonly isWithoutMatch: boolean;
  readonly onProgress: (line: string) => void;
}

/** A finding with the webhook bodies that would add what is missing. */
export interface FeedableFinding extends Finding {
  readonly bodies: readonly Payload[];
}

/** A number of rows that were not compared, and why. */
export interface SkippedRows {
  readonly reason: string;
  readonly rows: number;
}

/** The payments that earned nothing for one cause. */
export interface CauseCount {
  readonly cause: LikelyCause;
  readonly payments: number;
}

/** The result of a comparison. `close` removes its temporary files. */
export interface ExportComparison {
  /** The form of the export. */
  readonly title: string;
  readonly rows: number;
  readonly skipped: readonly SkippedRows[];
  /** The range that was compared, epoch ms, both ends included. Null without rows. */
  readonly range: { readonly from: number; readonly to: number } | null;
  /** The payments that the rows are about, also those of which the export has only a refund. */
  readonly payments: number;
  /** Those that the service has. */
  readonly matched: number;
  /** The stores of which the file has payments or refunds and the service none of those payments. */
  readonly unmatchedStores: readonly string[];
  readonly earnedNothing: readonly CauseCount[];
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  /** Returns the findings by time, any number of times. */
  readonly findings: () => AsyncIterable<FeedableFinding>;
  readonly close: () => Promise<void>;
}
