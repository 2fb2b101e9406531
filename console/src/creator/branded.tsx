import { useLayoutEffect } from 'react';
import { textOn } from './brand.ts';

/** Gives the page the colour of the app, if one was chosen: the mark of the app and the main buttons, also those of dialogs. */
export function useBrand(color: string | undefined): void {
  useLayoutEffect(() => {
    if (color === undefined) return;
    const { classList, style } = document.documentElement;
    classList.add('branded');
    style.setProperty('--brand', color);
    style.setProperty('--brand-text', textOn(color));
    return () => {
      classList.remove('branded');
      style.removeProperty('--brand');
      style.removeProperty('--brand-text');
    };
  }, [color]);
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
