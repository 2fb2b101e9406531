#!/usr/bin/env node
import { requireNode } from '../config/node-version.ts';

requireNode();
await import('./run.ts');
