import type { ReactNode } from 'react';
import { Link } from 'react-router';

/** A word with a colour that says how good it is. The word alone says it too. With `to`, it leads to what it is about. */
export function Tag({
  tone,
  to,
  children,
}: {
  readonly tone: 'good' | 'bad' | 'wait' | 'plain';
  readonly to?: string;
  readonly children: ReactNode;
}) {
  const look = { className: 'tag toned', 'data-tone': tone } as const;
  return to === undefined ? (
    <span {...look}>{children}</span>
  ) : (
    <Link {...look} to={to}>
      {children}
    </Link>
  );
}
