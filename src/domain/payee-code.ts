import { DAY_MS, MINUTE_MS } from './time.ts';

/** How long a code is valid with which a creator sets the own payee, ms. */
export const PAYEE_CODE_MS = 15 * MINUTE_MS;
/** How often a code may be entered wrong. */
export const PAYEE_CODE_ATTEMPTS = 5;
/** The most codes that a creator is sent within an hour. */
export const PAYEE_CODES_IN_AN_HOUR = 5;
/** How long a new address gets no codes, ms. */
export const NEW_ADDRESS_MS = 7 * DAY_MS;

/** 32 characters that nobody takes for another one: without I, O, 0 and 1. */
const CHARACTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
/** The characters of a code. */
export const PAYEE_CODE_LENGTH = 8;

/** Returns a code that is made from random bytes, one for each character. */
export function codeFrom(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, PAYEE_CODE_LENGTH), (byte) => CHARACTERS[byte % 32]).join('');
}

/** Returns a code as people read it, in two halves. */
export function shownCode(code: string): string {
  return `${code.slice(0, PAYEE_CODE_LENGTH / 2)}-${code.slice(PAYEE_CODE_LENGTH / 2)}`;
}

/** Returns a code as it was made, from how a person has typed it: without spaces and dashes, in capitals. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s\p{Pd}]/gu, '').toUpperCase();
}
