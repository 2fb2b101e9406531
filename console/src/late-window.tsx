import type { ModalWindowProps } from './modal-window.tsx';
import { late, LateNotice, useLate } from './parts/late.tsx';

const load = late(async () => await import('./modal-window.tsx'));

/** A window over the page, whose program is loaded after that of the page. It stays when it is closed, so that it can fade out. */
export function LateWindow(props: ModalWindowProps) {
  const { part, wait } = useLate(load, props.isOpen);
  if (part !== null) return <part.ModalWindow {...props} />;
  if (wait === null) return null;
  const { isHeld = false, isPageHidden = false, onClose } = props;
  return <LateNotice wait={wait} isHeld={isHeld} isPageHidden={isPageHidden} onClose={onClose} />;
}
