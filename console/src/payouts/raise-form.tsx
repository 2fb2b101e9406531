import { Anchor, Button, Divider, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { KeyRound } from 'lucide-react';
import { useEffect, useEffectEvent, useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Session } from '../api/client.ts';
import { KEYS, LIVE_MS, useStep } from '../api/queries.ts';
import { copyText, ErrorBox, Secret, Waiting } from '../parts.tsx';
import { useHeldDialog } from '../parts/held.ts';
import { ICON } from '../parts/icon.ts';
import { sayDone } from '../parts/toast.tsx';
import { canUsePasskeys, raiseWithPasskey } from '../passkeys/ceremonies.ts';
import { usePasskeys } from '../passkeys/queries.ts';
import { useCurrentSession } from '../session.ts';

/** How long before its end a raised session counts as ended, so that a request still reaches it, ms. */
const MARGIN_MS = 10_000;

/** Returns whether a session may pay now. */
export const isRaised = ({ raisedUntil }: Pick<Session, 'raisedUntil'>): boolean =>
  raisedUntil !== null && raisedUntil - MARGIN_MS > Date.now();

/**
 * Shows the step-up form while the session may not pay, then `children`. They call what they get when the service refuses
 * because the session may not pay any more: the form is shown again, and cancelling it leads back to them. What they hold must be kept
 * outside of them.
 */
export function AskToPay({
  onCancel,
  children,
}: {
  readonly onCancel: () => void;
  readonly children: (onNotRaised: () => void) => ReactNode;
}) {
  const client = useQueryClient();
  const session = useCurrentSession();
  const [mustStepUp, setMustStepUp] = useState(() => !isRaised(session));
  const [isBegun, setIsBegun] = useState(!mustStepUp);
  const begin = () => {
    setIsBegun(true);
    setMustStepUp(false);
  };
  if (mustStepUp) return <RaiseForm onRaised={begin} onCancel={isBegun ? begin : onCancel} />;
  return children(() => {
    setMustStepUp(true);
    void client.invalidateQueries({ queryKey: KEYS.session });
  });
}

/** Whether the service refused because the session may not pay, or not any more. */
export const isNotRaised = (error: Error | null): boolean =>
  error instanceof Problem && error.code === 'session_not_raised';

/** Handles an error of a change: calls `onNotRaised` if the service refused because the session may not pay any more. */
export const watchRaise = (onNotRaised: () => void) => (error: Error) => {
  if (isNotRaised(error)) onNotRaised();
};

interface RaiseProps {
  readonly onRaised: () => void;
  readonly onCancel: () => void;
  /** Whether the service has just refused this session a key that may pay. The clock of the browser can tell otherwise. */
  readonly isKeyRefused?: boolean;
}

/** Lets the session pay for 15 minutes: a member with a passkey or a mailed link, everybody else with a key that may pay. */
export function RaiseForm(props: RaiseProps) {
  const session = useCurrentSession();
  const passkeys = usePasskeys();
  const { member, permissions, sendsMail = false } = session;
  if (member !== null && !permissions.includes('payout')) return <NoRole {...props} role={member.role} />;
  if (passkeys.isLoading) return <Waiting what="your passkeys" />;
  const hasPasskey = canUsePasskeys(session) && (passkeys.data ?? []).some(({ raises }) => raises);
  const other =
    member !== null && sendsMail ? (
      <RaiseByMail {...props} email={member.email} isSecond={hasPasskey} />
    ) : (
      <RaiseByKey {...props} isSecond={hasPasskey} />
    );
  if (!hasPasskey) return other;
  return (
    <Stack>
      <RaiseByPasskey onRaised={props.onRaised} />
      <Divider label="or" />
      {other}
    </Stack>
  );
}

function RaiseByPasskey({ onRaised }: Pick<RaiseProps, 'onRaised'>) {
  const raise = useStep(raiseWithPasskey, KEYS.session);
  return (
    <Stack>
      <Text size="sm">
        Paying needs your passkey. This browser may then pay for 15 minutes, and payouts name you.
      </Text>
      {raise.error !== null && <ErrorBox error={raise.error} />}
      <Group justify="flex-end">
        <Button
          leftSection={<KeyRound {...ICON} />}
          data-autofocus
          loading={raise.isPending}
          onClick={() => raise.mutate(undefined, { onSuccess: onRaised })}
        >
          Use your passkey
        </Button>
      </Group>
    </Stack>
  );
}

/** Whether a way to pay is shown below that with a passkey, which then has the button that stands out and the focus. */
interface Second {
  readonly isSecond: boolean;
}

const buttonOf = (isSecond: boolean) =>
  isSecond ? { variant: 'default' as const } : { 'data-autofocus': true };

function NoRole({ role, onCancel }: RaiseProps & { readonly role: string }) {
  return (
    <Stack>
      <Text size="sm">
        Your role, {role}, does not pay. An owner of the account can give you the role finance or owner, on
        the page Team.
      </Text>
      <Group justify="flex-end">
        <Button variant="default" data-autofocus onClick={onCancel}>
          Close
        </Button>
      </Group>
    </Stack>
  );
}

/** Mails a link to the member, and goes on when it was opened in this browser: the session is the same one. */
function RaiseByMail({
  email,
  isSecond,
  onRaised,
  onCancel,
}: RaiseProps & Second & { readonly email: string }) {
  const client = useQueryClient();
  const session = useCurrentSession();
  const mail = useStep(async () => await read(api.POST('/session/mail-link')));
  const isWaiting = mail.data !== undefined;
  const mayPay = isRaised(session);
  useEffect(() => {
    if (!isWaiting || mayPay) return;
    const timer = setInterval(() => void client.invalidateQueries({ queryKey: KEYS.session }), LIVE_MS);
    return () => clearInterval(timer);
  }, [client, isWaiting, mayPay]);
  const raised = useEffectEvent(onRaised);
  useEffect(() => {
    if (isWaiting && mayPay) raised();
  }, [isWaiting, mayPay]);
  return (
    <Stack>
      <Text size="sm">
        {isSecond
          ? `A new link does as well, mailed to ${email} and opened in this browser.`
          : `Paying needs a new link, mailed to ${email} and opened in this browser. It may then pay for 15 minutes, and payouts name you. With a passkey, which you add on the page Access, no link is needed.`}
      </Text>
      {isWaiting && (
        <Text size="sm" role="status">
          A link is on its way to {mail.data.maskedRecipient}. Open it in another tab of this browser: this
          page then goes on by itself, and what you entered stays here.
        </Text>
      )}
      {mail.error !== null && <ErrorBox error={mail.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
        <Button
          {...buttonOf(isSecond)}
          loading={mail.isPending}
          disabled={isWaiting}
          onClick={() => mail.mutate(undefined)}
        >
          Mail me a link
        </Button>
      </Group>
    </Stack>
  );
}

/** What the key is called that a browser creates to pay with. */
const KEY_LABEL = 'Payments in the console';

/** How long after a sign-in a session may create a key that may pay, ms. */
const NEW_MS = 15 * 60_000;

/** Whether a session may create a key that may pay. That of a member may so only when it may pay already. */
const mayCreateKey = ({ member, permissions, createdAt }: Session): boolean =>
  member === null &&
  createdAt + NEW_MS > Date.now() &&
  (['setup', 'payout'] as const).every((permission) => permissions.includes(permission));

/** Creates a key that may pay, and nothing else. */
function useNewKey() {
  const { account } = useCurrentSession();
  return useStep(
    async () =>
      await read(
        api.POST('/accounts/{accountId}/keys', {
          params: { path: { accountId: account.id } },
          body: { label: KEY_LABEL, permissions: ['payout'] },
        }),
      ),
    KEYS.keys,
  );
}

/** Keeps the dialog open while a key is created, which nobody could see if it closed meanwhile. */
function Held() {
  useHeldDialog();
  return null;
}

function RaiseByKey({ isSecond, isKeyRefused = false, onRaised, onCancel }: RaiseProps & Second) {
  const session = useCurrentSession();
  const [key, setKey] = useState('');
  const raise = useStep(
    async (given: string) => await read(api.POST('/session/raise', { body: { key: given.trim() } })),
    KEYS.session,
  );
  const create = useNewKey();
  const created = create.data?.key;
  const canCreate = !isKeyRefused && mayCreateKey(session);
  const [mustCopy, setMustCopy] = useState(false);
  const goOn = (given: string) => raise.mutate(given, { onSuccess: onRaised });
  /** Goes on with a new key once it is copied, since it is shown once. Where a browser cannot copy, somebody does first. */
  const goOnWithNew = async (fresh: string) => {
    if (!(await copyText(fresh))) {
      setMustCopy(true);
      return;
    }
    sayDone(`The new key “${KEY_LABEL}” is in your clipboard. Keep it: it is not shown again.`);
    goOn(fresh);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        goOn(created ?? key);
      }}
    >
      <Stack>
        {created === undefined ? (
          <>
            <Text size="sm">
              {isSecond
                ? 'An account key with the permission “payout” does as well, and payouts then name that key.'
                : 'Paying needs an account key with the permission “payout”, also in a browser that is signed in. It may then pay for 15 minutes, and payouts name that key.'}
            </Text>
            {canCreate && (
              <>
                <Group gap="sm">
                  <Button
                    {...(isSecond ? { variant: 'default' as const } : {})}
                    loading={create.isPending}
                    onClick={() =>
                      create.mutate(undefined, { onSuccess: (fresh) => void goOnWithNew(fresh.key) })
                    }
                  >
                    Create a key and go on
                  </Button>
                  <Text size="sm" className="quiet" style={{ flex: '1 1 200px' }}>
                    It is copied. Keep it where you keep passwords: it is not shown again, and later payments
                    need it.
                  </Text>
                </Group>
                <Divider label="or, with a key that you have" />
              </>
            )}
            {create.isPending && <Held />}
            {create.error !== null && <ErrorBox error={create.error} />}
            <PasswordInput
              label="Key that may pay"
              placeholder="tri_sk_live_…"
              description="It is sent once and not kept in this browser."
              autoComplete="off"
              required
              withAsterisk={false}
              {...(isSecond ? {} : { 'data-autofocus': true })}
              value={key}
              onChange={(event) => setKey(event.currentTarget.value)}
            />
            <Text size="sm" className="quiet">
              {!canCreate && (
                <>
                  No such key yet? It is created within 15 minutes after a sign-in with an account key, or
                  with a link that the operator of the service prints with the command{' '}
                  <code>npm run -s admin -- console</code>.{' '}
                </>
              )}
              The keys are on the page{' '}
              <Anchor component={Link} to="/access" target="_blank" size="sm">
                Access
              </Anchor>
              , which opens in another tab; what you entered stays here.
            </Text>
          </>
        ) : (
          <Secret text={created} what="the key">
            It may pay, and nothing else, and is called “{KEY_LABEL}” on the page Access. Keep it: paying
            again later than in 15 minutes needs it.
          </Secret>
        )}
        {mustCopy && (
          <Text size="sm" role="status">
            This browser does not copy by itself. Select the key, copy it, then continue.
          </Text>
        )}
        {raise.error !== null && <ErrorBox error={raise.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel} disabled={create.isPending}>
            Cancel
          </Button>
          <Button
            type="submit"
            {...(isSecond || (canCreate && created === undefined) ? { variant: 'default' as const } : {})}
            loading={raise.isPending}
          >
            Continue
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
