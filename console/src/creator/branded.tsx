import type { CSSProperties, ReactNode } from 'react';
import { textOn } from './brand.ts';

/** Gives what is in it the colour of the app, if one was chosen: the mark of the app and the main buttons. */
export function Branded({
  color,
  children,
}: {
  readonly color: string | undefined;
  readonly children: ReactNode;
}) {
  if (color === undefined) return children;
  const style = { '--brand': color, '--brand-text': textOn(color) } as CSSProperties;
  return (
    <div className="branded" style={style}>
      {children}
    </div>
  );
}

/** The first letter of the app, whose name is beside it. */
export function BrandMark({ name }: { readonly name: string }) {
  const [letter = ''] = name.match(/[\p{L}\p{N}]/u) ?? [];
  return (
    <span className="brand-mark" aria-hidden="true">
      {letter.toUpperCase()}
    </span>
  );
}
