/**
 * The environment of the servers and system programs that the service starts. It has nothing of the service's own
 * environment, whose variables contain SECRETS_KEY and passwords. HOME is an existing folder without settings.
 */
export const CHILD_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  HOME: '/',
  LC_ALL: 'C',
  TZ: 'UTC',
};

/** Variables of Go and of proxies, which a build from source needs. */
const BUILD_VARIABLES =
  /^(?:PATH|HOME|TMPDIR|XDG_CACHE_HOME|GO[A-Z0-9_]*|SSL_CERT_(?:FILE|DIR)|(?:https?|no|all)_proxy)$/i;

/** Returns the variables of an environment that a build with Go needs. */
export function buildEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => BUILD_VARIABLES.test(name)));
}
