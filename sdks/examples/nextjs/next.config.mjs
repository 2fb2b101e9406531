import { fileURLToPath } from 'node:url';

export default {
  // The SDKs are linked from this repository. An app that installs them needs none of this file.
  outputFileTracingRoot: fileURLToPath(new URL('../../..', import.meta.url)),
  // The paths of this repository's tsconfig.json would lead to the sources.
  turbopack: { resolveAlias: { '@tributary/web': './node_modules/@tributary/web/dist/index.js' } },
};
