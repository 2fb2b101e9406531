/** Settings of a service that limits no caller. */
export const WITHOUT_LIMITS = {
  RATE_LIMIT_ACCOUNT: '0',
  RATE_LIMIT_SDK: '0',
  RATE_LIMIT_CLICKS: '0',
  RATE_LIMIT_IDENTIFY: '0',
  RATE_LIMIT_ADDRESS: '0',
  RATE_LIMIT_FAILURES: '0',
};
