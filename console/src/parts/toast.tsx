import { lazy } from 'react';
import { Extra } from '../parts.tsx';

/** Where a message leads to. */
export interface ToastLink {
  readonly to: string;
  readonly text: string;
}

// The program of the messages is loaded after the page: nothing is done before.
const load = async () => await import('./toast-area.tsx');
const ToastArea = lazy(load);

/** Where the messages appear. Once on a page. */
export function Toasts() {
  return (
    <Extra>
      <ToastArea />
    </Extra>
  );
}

/** Says for a few seconds that something was done, and may lead to it. The page shows it as well. */
export function sayDone(text: string, link?: ToastLink): void {
  void load().then(
    ({ show }) => show(text, link),
    // Without its program there is no message, as after an upgrade of the service.
    () => {},
  );
}
