/** The largest JSON body with an account key, bytes: enough for a bulk call of a hundred rows with long addresses. */
export const ACCOUNT_BODY_BYTES = 1024 * 1024;
/** The largest JSON body of a call that anybody can make, bytes. The budget of all bodies does not count bodies up to this size. */
export const OPEN_BODY_BYTES = 32 * 1024;
/** The largest body of a webhook, bytes. Its route reads it itself. */
export const WEBHOOK_BODY_BYTES = 1024 * 1024;
