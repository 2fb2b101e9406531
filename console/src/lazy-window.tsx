import type { ModalWindowProps } from './modal-window.tsx';
import { preloaded, LoadingNotice, useLazyPart } from './parts/lazy-part.tsx';

const load = preloaded(async () => await import('./modal-window.tsx'));

/** A window over the page, whose module is loaded after that of the page. It stays when it is closed, so that it can fade out. */
export function LazyWindow(props: ModalWindowProps) {
  const { part, wait } = useLazyPart(load, props.isOpen);
  if (part !== null) return <part.ModalWindow {...props} />;
  if (wait === null) return null;
  const { isHeld = false, isPageHidden = false, onClose } = props;
  return <LoadingNotice wait={wait} isHeld={isHeld} isPageHidden={isPageHidden} onClose={onClose} />;
}
