// Exits with 0 while the process is running. The balancer asks /readyz, which also checks what the process needs: a process
// without its database is not made better by a restart. A worker has no API; its health is that of its metrics.
const { ROLE, PORT = '3000', METRICS_PORT } = process.env;
const address =
  ROLE !== 'worker'
    ? `http://127.0.0.1:${PORT}/healthz`
    : METRICS_PORT && `http://127.0.0.1:${METRICS_PORT}/metrics`;
if (address) {
  const response = await fetch(address, { signal: AbortSignal.timeout(4_000) }).catch(() => undefined);
  process.exitCode = response?.ok === true ? 0 : 1;
}
