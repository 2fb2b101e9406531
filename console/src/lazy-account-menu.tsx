import { useState } from 'react';
import { AccountButton } from './account-button.tsx';
import type { AccountMenuProps } from './account-menu.tsx';
import { preloaded, LoadingNotice, useLazyPart } from './parts/lazy-part.tsx';

const load = preloaded(async () => await import('./account-menu.tsx'));

/** The menu of the account, whose module is loaded after that of the page. Until it is pressed, it is a button. */
export function LazyAccountMenu(props: AccountMenuProps) {
  const [isPressed, setIsPressed] = useState(false);
  const { part, wait } = useLazyPart(load, isPressed);
  if (part !== null) return <part.AccountMenu {...props} />;
  return (
    <>
      <AccountButton
        name={props.session.account.name}
        aria-haspopup="menu"
        aria-expanded={false}
        onClick={() => setIsPressed(true)}
      />
      {wait !== null && <LoadingNotice wait={wait} onClose={() => setIsPressed(false)} />}
    </>
  );
}
