import { parseArgs } from 'node:util';
import { buildCheckedImage } from './check-image.ts';

/*
 * `npm run image -- [--name NAME] [--own-base]`: builds the image with buildah, as root and without a daemon, and checks its files, rights,
 * packages, size and settings. `--own-base` makes its base of packages, on a machine that reaches no registry of images.
 */

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'localhost/tributary:local' },
    'own-base': { type: 'boolean', default: false },
  },
});
await buildCheckedImage(values.name, values['own-base']);
