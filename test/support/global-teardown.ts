/** Ends the servers of the run. */
export default async function globalTeardown(): Promise<void> {
  await globalThis.stopTestServers?.();
}
