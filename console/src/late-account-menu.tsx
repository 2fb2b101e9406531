import { useState } from 'react';
import { AccountButton } from './account-button.tsx';
import type { AccountMenuProps } from './account-menu.tsx';
import { late, LateNotice, useLate } from './parts/late.tsx';

const load = late(async () => await import('./account-menu.tsx'));

/** The menu of the account, whose program is loaded after that of the page. Until it is pressed, it is a button. */
export function LateAccountMenu(props: AccountMenuProps) {
  const [isPressed, setIsPressed] = useState(false);
  const { part, wait } = useLate(load, isPressed);
  if (part !== null) return <part.AccountMenu {...props} />;
  return (
    <>
      <AccountButton
        name={props.session.account.name}
        aria-haspopup="menu"
        aria-expanded={false}
        onClick={() => setIsPressed(true)}
      />
      {wait !== null && <LateNotice wait={wait} onClose={() => setIsPressed(false)} />}
    </>
  );
}
