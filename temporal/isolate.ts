/**
 * How long the code of a workflow may run without a pause, ms. The SDK's five seconds interrupt a task that got no processor time,
 * and the interruption can end the whole process ("async hook stack has become corrupted", temporalio/sdk-typescript issue 939). Our
 * workflows have no loop without an end. The SDK reads this option, and its types do not name it.
 */
export const ISOLATE = { isolateExecutionTimeout: 60_000 };
