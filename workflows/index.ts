export { delivery } from './delivery.ts';
export { heal } from './heal.ts';
export { hold } from './hold.ts';
export { payout } from './payout.ts';
export { sweep } from './sweep.ts';
