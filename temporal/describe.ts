import { WorkflowNotFoundError } from '@temporalio/client';
import type { PendingStep } from '../src/commands/deps.ts';
import { GRPC, grpcCode } from './grpc-errors.ts';
import type { Starter } from './start.ts';

/** What the service asks Temporal about workflows, and how it removes their histories. */
export function workflowRecords(starter: Starter) {
  return {
    /** Returns the step that a running workflow retries. Null if there is none, and if Temporal does not say in time. */
    async pendingStep(workflowId: string): Promise<PendingStep | null> {
      try {
        const described = await starter.call(
          async (temporal) => await temporal.workflow.getHandle(workflowId).describe(),
        );
        const [pending] = described?.raw.pendingActivities ?? [];
        const step = pending?.activityType?.name;
        return step == null ? null : { step, attempt: pending?.attempt ?? 1 };
      } catch {
        return null;
      }
    },

    /**
     * Deletes the history of a closed workflow. Returns `open` for one that still runs: deleting it would end it. Throws when
     * Temporal can't be reached.
     */
    async deleteHistory(workflowId: string): Promise<'deleted' | 'open' | 'absent'> {
      const result = await starter.call(async (temporal) => {
        try {
          const { status, runId } = await temporal.workflow.getHandle(workflowId).describe();
          if (status.name === 'RUNNING') return 'open';
          await temporal.workflowService.deleteWorkflowExecution({
            namespace: temporal.options.namespace,
            workflowExecution: { workflowId, runId },
          });
          return 'deleted';
        } catch (error) {
          if (error instanceof WorkflowNotFoundError || grpcCode(error) === GRPC.notFound) return 'absent';
          throw error;
        }
      });
      if (result === undefined) throw new Error('Temporal cannot be reached');
      return result;
    },
  };
}
