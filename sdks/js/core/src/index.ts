// The order of the modules in a bundle follows from this one, and decides about some bytes after gzip.
export { inTime, uuid } from './platform.ts';
export { asReferral, referralFrom, referralFromQuery } from './referral.ts';
export { createClient } from './client.ts';
export type { Client, ClientOptions, Halt, OwnClient } from './client.ts';
export { describe } from './debug.ts';
export type { DebugState, Inspection } from './debug.ts';
export { createLog, readTarget, stateName, UNNAMED } from './options.ts';
export type { AppOptions, CommonOptions } from './options.ts';
export type { MaybePromise, Platform, Storage } from './platform.ts';
export type { Referral } from './referral.ts';
export { deviceIdOf } from './state.ts';
