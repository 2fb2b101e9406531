import type { Attributes, SpanStatusCode, Tracer } from '@opentelemetry/api';

/** `SpanStatusCode.ERROR`. Only types are imported, so that the package is not loaded without tracing. */
const ERROR: SpanStatusCode.ERROR = 2;

let tracer: Tracer | null = null;

/** Sets where spans go; null for nowhere, as at first. */
export function useTracer(next: Tracer | null): void {
  tracer = next;
}

/**
 * Runs `work` in a span of the current trace. Without a tracer it only runs `work`. A failure marks the span with the
 * class of the error, never with its message, which may quote a value. `isFailure` leaves out what is only a refusal.
 */
export function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
  isFailure: (error: unknown) => boolean = () => true,
): Promise<T> {
  if (tracer === null) return work();
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work();
    } catch (error) {
      if (isFailure(error)) {
        const message = error instanceof Error ? error.name : typeof error;
        span.setStatus({ code: ERROR, message });
      }
      throw error;
    } finally {
      span.end();
    }
  });
}
