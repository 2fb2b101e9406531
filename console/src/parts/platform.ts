/** Whether shortcuts have the command key. */
export const isMac = /mac|iphone|ipad/i.test(navigator.userAgent);
