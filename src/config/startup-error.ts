/** A problem that the operator has to fix before the service can start. The message is one sentence that says what to do. */
export class StartupError extends Error {
  override name = 'StartupError';
}
