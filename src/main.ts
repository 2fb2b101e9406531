import { requireNode } from './config/node-version.ts';

requireNode();
await import('./start.ts');
