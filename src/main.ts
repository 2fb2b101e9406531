import { requireRuntime } from './config/node-version.ts';

requireRuntime();
await import('./start.ts');
