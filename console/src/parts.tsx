import { Alert, Badge, Button, Code, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Component, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useNavigationType } from 'react-router';
import { Problem } from './api/client.ts';
import type { Permission } from './api/client.ts';
import type { Head } from './page-heads.ts';
import { useHeldDialog } from './parts/held.ts';

/** Copies a text. Over http there is no `navigator.clipboard`, so the text is selected and copied as before. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- the only way without https
  const isCopied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}

const COPIED_MS = 2_000;

/** A button that copies a text. `what` completes its name for screen readers: "Copy the webhook URL". */
export function CopyButton({
  text,
  what,
  variant = 'default',
}: {
  readonly text: string;
  readonly what: string;
  /** Filled where copying is what most people came for. */
  readonly variant?: 'default' | 'filled';
}) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), COPIED_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <Button
      variant={variant}
      size="compact-sm"
      style={{ flexShrink: 0 }}
      aria-label={{ idle: `Copy ${what}`, copied: `Copied ${what}`, failed: `Select it: ${what}` }[state]}
      onClick={() => void copyText(text).then((done) => setState(done ? 'copied' : 'failed'))}
    >
      <span aria-live="polite">{{ idle: 'Copy', copied: 'Copied', failed: 'Select it' }[state]}</span>
    </Button>
  );
}

/** A text to copy, with its button. */
export function CopyLine({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <Group gap="xs" wrap="nowrap" align="center">
      <Code className="line" style={{ flex: '0 1 auto', padding: '5px 8px' }}>
        {text}
      </Code>
      <CopyButton text={text} what={what} />
    </Group>
  );
}

/** Several lines of code to copy. */
export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <Stack gap={6}>
      <Group justify="flex-end">
        <CopyButton text={code} what={what} />
      </Group>
      {/* A region that scrolls has to be reachable by keyboard. */}
      <pre className="code" tabIndex={0} aria-label={what}>
        {code}
      </pre>
    </Stack>
  );
}

/** A secret that is shown once. */
export function Secret({
  text,
  what,
  children,
}: {
  readonly text: string;
  readonly what: string;
  readonly children: ReactNode;
}) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => ref.current?.focus(), []);
  // A press beside it would lose what nobody can see again.
  useHeldDialog();
  return (
    <Alert
      ref={ref}
      tabIndex={-1}
      color="yellow"
      variant="light"
      title={`Copy ${what} now: it is shown once`}
      role="status"
    >
      <Stack gap="xs">
        <CopyLine text={text} what={what} />
        <Text size="sm">{children}</Text>
      </Stack>
    </Alert>
  );
}

/** Returns a text of the service, with what is between backticks as code. */
const withCode = (text: string): ReactNode[] =>
  text.split('`').map((part, index) => (index % 2 === 0 ? part : <Code key={index}>{part}</Code>));

/** An error in the words of the service. */
export function ErrorBox({
  error,
  labels = {},
  retry,
}: {
  readonly error: Error;
  /** What the page calls fields of the API, by their paths. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly retry?: () => void;
}) {
  const problem = error instanceof Problem ? error : null;
  const fields = problem?.fields ?? [];
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      title={fields.length > 0 ? 'Check what you entered' : 'That did not work'}
    >
      <Stack gap={6}>
        {fields.length > 0 ? (
          fields.map(({ path, message }) => (
            <Text size="sm" key={path + message}>
              {withCode(path === '' ? message : `${labels[path] ?? path}: ${message}`)}
            </Text>
          ))
        ) : (
          <Text size="sm">{withCode(error.message)}</Text>
        )}
        {problem?.requestId != null && (
          <Text size="xs" className="quiet">
            Request {problem.requestId}
          </Text>
        )}
        {retry !== undefined && (
          <Group>
            <Button variant="default" size="compact-sm" onClick={retry}>
              Try again
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}

/**
 * Shows what happened instead of a page that cannot be loaded, such as after an upgrade of the service. Takes the path of the
 * page as its `key`, so that another page is tried anew.
 */
export class PageBoundary extends Component<
  { readonly children: ReactNode },
  { readonly hasFailed: boolean }
> {
  override readonly state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  readonly #reload = () => {
    if (this.state.hasFailed) location.reload();
  };

  override componentDidMount() {
    addEventListener('online', this.#reload);
  }

  override componentWillUnmount() {
    removeEventListener('online', this.#reload);
  }

  override render() {
    const why = navigator.onLine
      ? 'The page could not be loaded. The service may have been upgraded since you opened it.'
      : 'You are offline. The page is loaded when the connection is back.';
    return this.state.hasFailed ? (
      <ErrorBox error={new Error(why)} retry={() => location.reload()} />
    ) : (
      this.props.children
    );
  }
}

function watchConnection(onChange: () => void): () => void {
  for (const type of ['online', 'offline']) addEventListener(type, onChange);
  return () => {
    for (const type of ['online', 'offline']) removeEventListener(type, onChange);
  };
}

/** The number of places of each shape: a few lines, a page, the rows of a list, or figures above a chart. */
const PLACES = { lines: 3, page: 3, rows: 8, figures: 2 } as const;

/**
 * What a query shows before it has an answer: the places of what will be there, and for screen readers what is awaited. Offline it says
 * that it waits for the connection.
 */
export function Waiting({
  what,
  shape = 'lines',
}: {
  readonly what: string;
  readonly shape?: keyof typeof PLACES;
}) {
  const isOnline = useSyncExternalStore(watchConnection, () => navigator.onLine);
  return isOnline ? (
    <div className={`waiting waiting-${shape}`} role="status">
      <span className="spoken">Loading {what} …</span>
      {Array.from({ length: PLACES[shape] }, (_, n) => (
        <i key={n} />
      ))}
    </div>
  ) : (
    <Text size="sm" className="quiet" p="xl" role="status">
      You are offline. The page goes on when the connection is back.
    </Text>
  );
}

/** What is no part of a page, such as the search: while it cannot be loaded, it is not there, and the page stays. */
export class Extra extends Component<{ readonly children: ReactNode }, { readonly hasFailed: boolean }> {
  override readonly state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? null : <Suspense>{this.props.children}</Suspense>;
  }
}

/** What a page shows that the key of the session may not see. */
export function NoPermission({
  permission,
  what,
}: {
  readonly permission: Permission;
  readonly what: string;
}) {
  return (
    <div className="surface">
      <Stack gap="xs" p="xl">
        <Title order={2} size="h4">
          You cannot see {what}
        </Title>
        <Text size="sm" className="quiet">
          It needs the permission “{permission}”, which you do not have here. A member gets another role from
          an owner of the account, on the page Team. Who has signed in with a key asks somebody with that
          permission for another key.
        </Text>
      </Stack>
    </div>
  );
}

/** The windows in which the navigation is always shown: from the breakpoint "sm" of the theme on. */
const WIDE = '(min-width: 48em)';

/** Whether a page has been shown since the script was loaded. */
let hasShownPage = false;

/**
 * Returns the ref of a title that takes the focus when a link or a button has led to its page, so that the keyboard and a screen
 * reader go on there. A page that was loaded begins at its top. The choice of the app keeps the focus, to choose another one,
 * except in a narrow window, where it is in the menu, which has closed.
 */
function useFocusOnArrival() {
  const title = useRef<HTMLHeadingElement>(null);
  const arrival = useNavigationType();
  // The browser itself restores where a page was scrolled to.
  const [isBack] = useState(arrival === 'POP');
  useEffect(() => {
    const isChoosingApp = document.activeElement instanceof HTMLSelectElement && matchMedia(WIDE).matches;
    if (hasShownPage && !isChoosingApp) title.current?.focus({ preventScroll: isBack });
    hasShownPage = true;
  }, [isBack]);
  return title;
}

/** The title of a page, with a sentence that says what it is for. */
export function PageHead({
  title,
  lead,
  mark,
  children,
  aside,
}: Partial<Head> & {
  readonly title: string;
  /** What is shown before the title. */
  readonly mark?: ReactNode;
  readonly children?: ReactNode;
  readonly aside?: ReactNode;
}) {
  const heading = useFocusOnArrival();
  useEffect(() => {
    document.title = `${title} · Tributary`;
  }, [title]);
  return (
    <Group justify="space-between" align="flex-end" gap="md" mb="lg">
      <div style={{ maxWidth: 640 }}>
        <Group gap="sm" wrap="nowrap">
          {mark}
          <Title ref={heading} tabIndex={-1} order={1} size="h2" className="page-title">
            {title}
          </Title>
        </Group>
        {(lead !== undefined || children !== undefined) && (
          <Text size="sm" className="quiet" mt={4}>
            {lead} {children}
          </Text>
        )}
      </div>
      {aside}
    </Group>
  );
}

export function PermissionBadges({ permissions }: { readonly permissions: readonly Permission[] }) {
  return (
    <Group gap={4}>
      {permissions.map((permission) => (
        <Badge key={permission} variant="default" size="sm" radius="sm" tt="none" fw={500}>
          {permission}
        </Badge>
      ))}
    </Group>
  );
}

export function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 24 24" aria-hidden="true">
      <rect width="24" height="24" rx="6" fill="#0b7285" />
      <path
        d="M7 5v4c0 4 5 3 5 7v3M17 5v4c0 4-5 3-5 7"
        fill="none"
        stroke="white"
        strokeWidth="2.2"
        strokeLinecap="round"
      />
    </svg>
  );
}
