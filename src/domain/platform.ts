/** The mobile systems that a link can have a destination of its own for. */
export type Platform = 'ios' | 'android';

/** Phones with Windows name both other systems, too. */
const NEITHER = /\bWindows Phone\b/;

/**
 * Returns the mobile system that a User-Agent names, or null. iPadOS says that it is a Mac unless the user asks for mobile pages,
 * so an iPad is often not recognized.
 */
export function platformOf(userAgent: string): Platform | null {
  if (NEITHER.test(userAgent)) return null;
  if (/\b(?:iPhone|iPad|iPod)\b/.test(userAgent)) return 'ios';
  return /\bAndroid\b/.test(userAgent) ? 'android' : null;
}
