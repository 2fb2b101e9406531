import type { RequestListener } from 'node:http';
import type { TemporalWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { createAddressHasher } from '../commands/address-hasher.ts';
import type { WebhookCache } from '../commands/webhook-cache.ts';
import type { RefusalCounter } from '../commands/refusal-counter.ts';
import { DEFAULT_LIMITS } from '../domain/evaluation.ts';
import { DEFAULT_RETENTION } from '../domain/retention.ts';
import { serverLimits, startHttpServer } from '../http-server.ts';
import type { HttpServer } from '../http-server.ts';
import { NO_ADMISSION_LIMITS } from '../http/admission.ts';
import { createIntake } from '../http/intake.ts';
import { createApp } from '../http/app.ts';
import { createBodyBudget } from '../http/body-budget.ts';
import type { ReadinessCheck } from '../http/deps.ts';
import { createKnownCallers } from '../http/known-callers.ts';
import { createRateLimits } from '../http/rate-limits.ts';
import { localAddressOf } from '../lib/listen.ts';
import type { Metrics } from '../metrics.ts';
import type { Database } from './database.ts';
import type { ServiceSettings } from './settings.ts';

export interface Api {
  readonly url: string;
  readonly ownUrl: string;
  readonly server: HttpServer;
}

interface ApiDeps {
  readonly database: Database;
  readonly workflows: TemporalWorkflowStarter;
  readonly webhookCache: WebhookCache;
  readonly refusals: RefusalCounter;
  readonly readiness: () => Promise<readonly ReadinessCheck[]>;
  readonly metrics: Metrics | null;
}

/** Serves the API. */
export async function startApi(settings: ServiceSettings, deps: ApiDeps): Promise<Api> {
  const { host, role, secretBox, logger } = settings;
  const { database, workflows, webhookCache, refusals, readiness, metrics } = deps;
  const { sql, apiSql, creatorSql, patientSql, intakeSql } = database;
  const urlsOf = (listeningUrl: string) => ({
    url: settings.publicUrl ?? listeningUrl,
    ownUrl: localAddressOf(host, Number(new URL(listeningUrl).port || 80)),
  });
  const createHandler = (listeningUrl: string): RequestListener => {
    const { url, ownUrl } = urlsOf(listeningUrl);
    const app = createApp({
      sql: apiSql,
      creatorSql,
      patientSql,
      logger,
      now: Date.now,
      publicUrl: url.replace(/\/$/, ''),
      ownUrl,
      temporalUi:
        settings.temporalUiUrl == null
          ? null
          : { url: settings.temporalUiUrl, namespace: settings.temporal.namespace },
      trustProxy: settings.trustProxy,
      secretBox,
      rateLimits: createRateLimits(settings.rateLimits),
      maxPaymentCents: settings.maxPaymentCents ?? DEFAULT_LIMITS.maxPaymentCents,
      bodyBudget: createBodyBudget(),
      knownSenders: createKnownCallers(),
      knownCredentials: createKnownCallers(),
      knownLinks: createKnownCallers(),
      refusals,
      idempotencyDays: (settings.retention ?? DEFAULT_RETENTION).idempotency_keys,
      intake: createIntake(intakeSql, settings.admission ?? NO_ADMISSION_LIMITS, settings.sharedHostApps),
      addressHasher: createAddressHasher({ sql, secretBox, logger }),
      workflows,
      webhookCache,
      ...(settings.webhookTargets === undefined ? {} : { webhookTargets: settings.webhookTargets }),
      sendsMail: settings.mail != null,
      readiness,
      pendingStep: async (workflowId) => await workflows.pendingStep(workflowId),
      ...(metrics === null
        ? {}
        : { observeRequest: metrics.observeRequest, observeExport: metrics.observeExport }),
    });
    const handle = app.callback();
    return (request, response) => void handle(request, response);
  };
  const limits = serverLimits(settings.trustProxy, settings.maxConnections);
  const server = await startHttpServer(host, settings.port, createHandler, limits);
  logger.info({ url: server.url, role, msg: 'listening' });
  return { ...urlsOf(server.url), server };
}
