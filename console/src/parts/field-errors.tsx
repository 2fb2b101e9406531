import { useEffect, useRef, useState } from 'react';
import type { FormEvent, ReactNode } from 'react';
import { Problem } from '../api/client.ts';
import { ErrorBox } from '../parts.tsx';

/** What a field gets of the errors: what is wrong with it, and the name by which it is found. */
export interface FieldError {
  readonly error: string | null;
  readonly 'data-field': string;
}

export interface FieldErrors<F extends string> {
  /** Returns the props of the field for a path of the API. */
  readonly at: (path: F) => FieldError;
  /** The props of the element around the fields. */
  readonly root: {
    readonly ref: (element: HTMLElement | null) => void;
    readonly onInput: (event: FormEvent<HTMLElement>) => void;
  };
  /** What belongs to no field that is shown. Null for nothing. */
  readonly rest: ReactNode;
}

interface Found {
  readonly path: string;
  readonly message: string;
}

/** Returns the path of the field that shows an error: of a list, the one for the whole list. */
function fieldOf(paths: readonly string[], path: string): string | undefined {
  return paths.find((one) => one === path) ?? paths.find((one) => path.startsWith(`${one}.`));
}

/** Returns a message in the words of the console, with the line of a list: "Line 2: …". */
function inWords(field: string, { path, message }: Found): string {
  const [index = ''] = path.slice(field.length + 1).split('.');
  const words = message.replace('the setting destinationSchemes', 'the setting “Own schemes”');
  return /^\d+$/.test(index) ? `${field === 'tags' ? 'Tag' : 'Line'} ${Number(index) + 1}: ${words}` : words;
}

const NONE: readonly string[] = [];

const nameOf = (element: Element): string => element.getAttribute('data-field') ?? '';

const fieldsIn = (root: HTMLElement | null): HTMLElement[] => [
  ...(root?.querySelectorAll<HTMLElement>('[data-field]') ?? []),
];

const CONTROLS = 'input:not([type=hidden]), select, textarea';

/**
 * Shows the errors of a call at the fields that they are about, and moves the focus to the first of these. `labels` names the fields by
 * their paths in the API. `codes` says which field another error is about, and in which words. A field that is changed is not called
 * wrong any more.
 */
export function useFieldErrors<F extends string>(
  error: Error | null,
  labels: Readonly<Record<F, string>>,
  codes: Readonly<Record<string, readonly [path: NoInfer<F>, message: string]>> = {},
): FieldErrors<F> {
  const root = useRef<HTMLElement>(null);
  const [seen, setSeen] = useState<{
    readonly error: Error | null;
    /** The fields that were changed since, and those that are not shown. */
    readonly changed: readonly string[];
    readonly hidden: readonly string[];
  }>({ error: null, changed: [], hidden: [] });
  const { changed, hidden } = seen.error === error ? seen : { changed: NONE, hidden: NONE };
  const problem = error instanceof Problem ? error : null;
  const byCode = problem !== null && Object.hasOwn(codes, problem.code) ? codes[problem.code] : undefined;
  const all: readonly Found[] =
    byCode === undefined ? (problem?.fields ?? []) : [{ path: byCode[0], message: byCode[1] }];
  const paths = Object.keys(labels);
  const messages = new Map<string, string>();
  for (const one of all) {
    const field = fieldOf(paths, one.path);
    if (field !== undefined && !messages.has(field)) messages.set(field, inWords(field, one));
  }
  const others = all.filter(({ path }) => {
    const field = fieldOf(paths, path);
    return field === undefined || hidden.includes(field);
  });
  useEffect(() => {
    if (messages.size === 0) return;
    const fields = fieldsIn(root.current);
    const missing = [...messages.keys()].filter((path) => !fields.some((field) => nameOf(field) === path));
    if (missing.length > 0) setSeen({ error, changed: [], hidden: missing });
    const first = fields.find((field) => messages.has(nameOf(field)));
    (first?.matches(CONTROLS) === true ? first : first?.querySelector<HTMLElement>(CONTROLS))?.focus();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once for each error
  }, [error]);
  const rest =
    error === null
      ? null
      : problem === null || all.length === 0
        ? error
        : others.length === 0
          ? null
          : problem.withFields([...others]);
  return {
    at: (path) => ({
      error: changed.includes(path) ? null : (messages.get(path) ?? null),
      'data-field': path,
    }),
    root: {
      ref: (element) => {
        root.current = element;
      },
      onInput: ({ target }) => {
        const field = target instanceof Element ? target.closest('[data-field]') : null;
        if (field !== null && error !== null)
          setSeen({ error, hidden, changed: [...changed, nameOf(field)] });
      },
    },
    rest: rest === null ? null : <ErrorBox error={rest} labels={labels} />,
  };
}
