import type { ModalWindowProps } from './modal-window.tsx';
import { late, useLate } from './parts/late.ts';

const load = late(async () => await import('./modal-window.tsx'));

/** A window over the page, whose program is loaded after that of the page. It stays when it is closed, so that it can fade out. */
export function LateWindow(props: ModalWindowProps) {
  const part = useLate(load, props.isOpen);
  return part === null ? null : <part.ModalWindow {...props} />;
}
