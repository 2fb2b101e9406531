// Expo config plugin: lets the links of the given domains, and of a scheme, open the app. Expo's own plugins write the native files.
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const SCHEME = /^[a-z][a-z0-9+.-]*$/;
const PATH = /^\/[^\s?#]*$/;

/** Returns a list of texts: those given, each once, after those that are there already. */
const merge = (present, given) => [...new Set([...[present ?? []].flat(), ...given])];

/**
 * Returns the Expo config with what opens the app by a link. Options: `domains`, a list of hosts, `pathPrefix` of the links on them, and
 * `scheme`. Without a prefix, Android before 15 opens the app for every page of a domain, such as the console.
 */
module.exports = function withTributary(config, { domains = [], pathPrefix = '/l/', scheme } = {}) {
  if (!Array.isArray(domains)) throw new Error('@tributary/react-native: `domains` must be a list.');
  for (const domain of domains)
    if (!DOMAIN.test(domain))
      throw new Error(
        `@tributary/react-native: "${domain}" is no domain. Write it in lower case, without https:// and a path.`,
      );
  if (!PATH.test(pathPrefix))
    throw new Error(
      `@tributary/react-native: "${pathPrefix}" is no path prefix. Write it with a slash first, such as "/l/my-app/".`,
    );
  if (scheme !== undefined && !SCHEME.test(scheme))
    throw new Error(
      `@tributary/react-native: "${scheme}" is no scheme. Write it without ://, such as "shop".`,
    );

  const { ios = {}, android = {} } = config;
  const isPresent = (domain) =>
    (android.intentFilters ?? []).some(({ autoVerify, data }) =>
      [data ?? []].flat().some(({ host, scheme: of }) => autoVerify && of === 'https' && host === domain),
    );
  const filters = domains
    .filter((domain, index) => !isPresent(domain) && domains.indexOf(domain) === index)
    .map((host) => ({
      action: 'VIEW',
      autoVerify: true,
      data: [{ scheme: 'https', host, pathPrefix }],
      category: ['BROWSABLE', 'DEFAULT'],
    }));
  return {
    ...config,
    ...(scheme !== undefined && { scheme: merge(config.scheme, [scheme]) }),
    ...(domains.length > 0 && {
      ios: {
        ...ios,
        associatedDomains: merge(
          ios.associatedDomains,
          domains.map((domain) => `applinks:${domain}`),
        ),
      },
      android: { ...android, intentFilters: [...(android.intentFilters ?? []), ...filters] },
    }),
  };
};
