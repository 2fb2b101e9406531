import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { envDetectorSync, Resource } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { OpenTelemetryWorkflowClientInterceptor } from '@temporalio/interceptors-opentelemetry/lib/client/index.js';
import {
  makeWorkflowExporter,
  OpenTelemetryActivityInboundInterceptor,
} from '@temporalio/interceptors-opentelemetry/lib/worker/index.js';
import type { ActivityInterceptorsFactory, WorkerOptions } from '@temporalio/worker';
import { useTracer } from '../src/config/tracing.ts';

const STOP_TIMEOUT_MS = 2_000;

/** Sends traces of requests, workflows and activities to an OpenTelemetry collector. */
export interface Tracing {
  readonly clientInterceptors: readonly WorkflowClientInterceptor[];
  readonly activityInterceptors: readonly ActivityInterceptorsFactory[];
  /** Receives the spans of the workflow code. */
  readonly sinks: NonNullable<WorkerOptions['sinks']>;
  /** Sends what was not sent yet. */
  readonly flush: () => Promise<void>;
  /** Sends what was not sent yet, for at most 2 s, and ends. Never throws: a missing collector delays nothing else. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts to send traces to the OTLP/HTTP endpoint. The SDK of OpenTelemetry reads its other variables itself, such as
 * OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER and OTEL_RESOURCE_ATTRIBUTES. This file is loaded only when tracing is on.
 */
export function startTracing(endpoint: string): Tracing {
  const resource = new Resource({ 'service.name': 'tributary' }).merge(envDetectorSync.detect());
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const processor = new BatchSpanProcessor(exporter);
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
  provider.register({ contextManager: new AsyncLocalStorageContextManager() });
  useTracer(provider.getTracer('tributary'));
  return {
    clientInterceptors: [new OpenTelemetryWorkflowClientInterceptor()],
    activityInterceptors: [(context) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(context) })],
    sinks: { exporter: makeWorkflowExporter(processor, resource) },
    flush: async () => await processor.forceFlush(),
    stop: async () => {
      useTracer(null);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, STOP_TIMEOUT_MS);
      });
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}
