import type { ReactNode } from 'react';

/** A word with a colour that says how good it is. The word alone says it too. */
export function Tag({
  tone,
  children,
}: {
  readonly tone: 'good' | 'bad' | 'wait' | 'plain';
  readonly children: ReactNode;
}) {
  return (
    <span className="tag toned" data-tone={tone}>
      {children}
    </span>
  );
}
