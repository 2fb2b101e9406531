const COLOR = /^#[0-9a-f]{6}$/i;

/** Whether a text is a colour of the form `#RRGGBB`, in capitals or not. */
export const isBrandColor = (text: string): boolean => COLOR.test(text);
