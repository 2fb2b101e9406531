import { NavLink } from 'react-router';

/** The links between the parts of the payouts. */
export function PartsOfPayouts({ appId }: { readonly appId: string }) {
  return (
    <nav className="page-parts" aria-label="Parts of the payouts">
      <NavLink end to={`/apps/${appId}/payouts`}>
        Due
      </NavLink>
      <NavLink to={`/apps/${appId}/payouts/runs`}>Runs</NavLink>
    </nav>
  );
}
