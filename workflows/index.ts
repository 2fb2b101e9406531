export { convert } from './convert.ts';
export { delivery } from './delivery.ts';
export { heal } from './heal.ts';
export { hold } from './hold.ts';
export { payout } from './payout.ts';
export { rates } from './rates.ts';
export { reprocess } from './reprocess.ts';
export { sweep } from './sweep.ts';
