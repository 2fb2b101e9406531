import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { KEYS } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { isNotRaised, RaiseForm } from './raise-form.tsx';

/**
 * Asks for a key over a form, which keeps what was entered, while `change` is refused because the session may not pay. For forms of which
 * only some changes need that. It stands beside the form, not in it: what is sent here would send the form, too.
 */
export function RaiseOver({
  title,
  change: { error, reset },
  onRaised,
}: {
  readonly title: string;
  readonly change: { readonly error: Error | null; readonly reset: () => void };
  /** Sends the change again. */
  readonly onRaised: () => void;
}) {
  const client = useQueryClient();
  const isAsking = isNotRaised(error);
  // The page may still take the session for one that may pay.
  useEffect(() => {
    if (isAsking) void client.invalidateQueries({ queryKey: KEYS.session });
  }, [client, isAsking]);
  return (
    <Dialog isOpen={isAsking} onClose={reset} title={title}>
      <RaiseForm onRaised={onRaised} onCancel={reset} />
    </Dialog>
  );
}

/** Returns the error of a change that the form shows itself. */
export const shownError = (error: Error | null): Error | null => (isNotRaised(error) ? null : error);
