/** Name of the signal that gives a payout workflow an open request, by the request's id. */
export const PAYOUT_REQUESTED = 'payoutRequested';

/** Name of the signal that ends the wait for the next attempt at a message. */
export const SEND_NOW = 'sendNow';
