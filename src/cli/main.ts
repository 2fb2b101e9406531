#!/usr/bin/env node
import { requireRuntime } from '../config/node-version.ts';

requireRuntime();
await import('./run.ts');
