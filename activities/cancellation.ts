import { asyncLocalStorage } from '@temporalio/activity';

/**
 * Throws when the activity was cancelled: its attempt has timed out, or its worker is shutting down. Called between the
 * parts of a long activity, so that a new attempt does not run beside the old one. Does nothing outside of an activity.
 */
export function throwIfCancelled(): void {
  asyncLocalStorage.getStore()?.cancellationSignal.throwIfAborted();
}
