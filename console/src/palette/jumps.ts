/** Where a text leads that is an id, or may be one. */
interface Jump {
  /** The path of the page, under that of the app. */
  readonly path: string;
  readonly title: string;
}

/** The pages of single things, by the beginning of their ids. */
const PAGES: Readonly<Record<string, readonly [path: string, what: string]>> = {
  evt_: ['events/', 'Event'],
  pay_: ['payouts/', 'Payout'],
  run_: ['payouts/runs/', 'Payout run'],
  aff_: ['creators/', 'Creator'],
};

/** Returns where a text leads: to the page of an id of the service, else to the events, commissions and unattributed payments of a user. */
export function jumpsTo(text: string): readonly Jump[] {
  const page = /^[a-z]{3}_[0-9a-z]{26}$/.test(text) ? PAGES[text.slice(0, 4)] : undefined;
  if (page !== undefined) return [{ path: page[0] + text, title: `${page[1]} ${text}` }];
  const user = encodeURIComponent(text);
  return [
    { path: `events?user=${user}`, title: `Events of the user “${text}”` },
    { path: `commissions?user=${user}`, title: `Commissions of the user “${text}”` },
    { path: `unattributed?user=${user}`, title: `Unattributed payments of the user “${text}”` },
  ];
}
