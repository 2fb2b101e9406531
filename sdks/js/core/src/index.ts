export { createClient } from './client.ts';
export type { Client, ClientOptions, Halt, OwnClient } from './client.ts';
export { createLog, readTarget, stateName, UNNAMED } from './options.ts';
export type { AppOptions, CommonOptions } from './options.ts';
export { inTime, uuid } from './platform.ts';
export type { MaybePromise, Platform, Storage } from './platform.ts';
export { asReferral, referralFrom, referralFromQuery } from './referral.ts';
export type { Referral } from './referral.ts';
