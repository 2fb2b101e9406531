import { withDecimals } from '../shared/minor-units.ts';
import type { MinorUnits } from '../shared/minor-units.ts';

/** The decimals of Paddle's amounts, which are in the lowest denomination of a currency. */
export const PADDLE_MINOR_UNITS: MinorUnits = {
  source: { title: 'Currencies', url: 'https://developer.paddle.com/api-reference/currencies' },
  decimals: new Map(withDecimals(0, 'CLP JPY KRW VND')),
};
