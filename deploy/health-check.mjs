// Exits with 0 while the process is running. The balancer asks /readyz, which also checks what the process needs: a process
// without its database is not made better by a restart. One that was started with a wrong SECRETS_KEY is unhealthy, so that an
// update stops. A worker has no API; its health is that of its metrics.
const { ROLE, PORT = '3000', METRICS_PORT } = process.env;
const port = ROLE !== 'worker' ? PORT : METRICS_PORT;
const get = async (path, ms) =>
  await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(ms) }).catch(() => undefined);
if (port) {
  const alive = await get(ROLE !== 'worker' ? '/healthz' : '/metrics', 3_000);
  const readiness = alive?.ok === true ? await get('/readyz', 1_500) : undefined;
  const text = readiness?.status === 503 ? await readiness.text() : '';
  const lacksKeys = /Not available: [^.]*\bsecrets\b|"name":"secrets","ok":false/.test(text);
  process.exitCode = alive?.ok === true && !lacksKeys ? 0 : 1;
}
