import { fileURLToPath } from 'node:url';

export default {
  // The SDKs are linked from this repository. An app that installs them needs none of this file.
  outputFileTracingRoot: fileURLToPath(new URL('../../..', import.meta.url)),
};
