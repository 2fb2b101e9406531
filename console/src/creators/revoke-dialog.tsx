import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';

type Creator = Schemas['ListedAffiliate'];

/** Ends the access of the creator to their own page, until there is a new link. */
export function RevokeDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const revoke = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links/revoke', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
  );
  const close = () => {
    revoke.reset();
    onClose();
  };
  return (
    <Dialog isOpen={isOpen} onClose={close} title={`Revoke the sign-in links of ${creator.name}`}>
      <Confirm
        action="Revoke and sign out"
        color="red.9"
        change={revoke}
        onConfirm={() => revoke.mutate(undefined, { onSuccess: close })}
        onClose={close}
      >
        The sign-in links of this creator stop working, and every browser of the creator is signed out at
        once. The links that the creator shares do not change. A new sign-in link lets the creator sign in
        again.
      </Confirm>
    </Dialog>
  );
}
