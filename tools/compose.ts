import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { projectRoot } from '../src/config/project-root.ts';

export type Variables = Readonly<Record<string, string | undefined>>;

export interface ComposeService {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly stop_grace_period?: string;
  readonly networks?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly [name: string]: unknown;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
}

/** Reads a compose file of this repository, with its anchors and merge keys resolved, and its variables as they are. */
export function readCompose(name = 'docker-compose.yml'): ComposeFile {
  return parse(readFileSync(path.join(projectRoot, name), 'utf8'), { merge: true }) as ComposeFile;
}

/** A variable in a compose file: `${NAME}`, `${NAME:-default}` or `${NAME:?what to do when it is missing}`. */
export const VARIABLE = /\$\{(?<name>[A-Z][A-Z0-9_]*)(?::(?<kind>[-?])(?<rest>[^}]*))?\}/g;

/** Replaces the variables of a text as Compose does. Throws the sentence of a required variable that is missing. */
export function interpolate(text: string, variables: Variables): string {
  return text.replaceAll(VARIABLE, (_, name: string, kind?: string, rest = '') => {
    const value = variables[name] ?? '';
    if (value !== '' || kind === undefined) return value;
    if (kind === '?') throw new Error(rest);
    return rest;
  });
}

/** Returns the environment that Compose gives to a service. A variable without a value is passed on if it is set. */
export function environmentOf(service: string, variables: Variables): Record<string, string> {
  const { environment = {} } = readCompose().services[service] ?? {};
  const entries = Object.entries(environment).flatMap(([name, text]) => {
    const value = text === null ? variables[name] : interpolate(text, variables);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}
