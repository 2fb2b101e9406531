/**
 * Characters that continue an identifier: letters with their marks, digits, pictograms, and characters of ids and addresses.
 * Beside one of them an identifier is a part of another one.
 */
const PART = String.raw`\p{L}\p{M}\p{N}\p{So}\-_+@|$%\\`;
/** Characters that stand in ids and addresses, but also around them. They continue an identifier if a part follows. */
const JOINT = String.raw`.:!*~#\p{Cf}`;
/** `o'ann@example.com` is another address than `ann@example.com`, while `ann@example.com's` is not. */
const PART_BEFORE = new RegExp(`[${PART}][${JOINT}']*$`, 'u');
const PART_AFTER = new RegExp(`^[${JOINT}]*[${PART}]`, 'u');
const ONLY_JOINTS = new RegExp(`^[${JOINT}']*$`, 'u');
/** An e-mail address or a telephone number. It is the same one with and without the scheme of a URI. */
const CONTACT = /^(?:[^\s:@]+@[^\s:@]+|\+?\d[\d\s().-]*)$/u;
/** A scheme, or the name of a field, that says that a contact follows. Any other text and a colon may belong to an id. */
const SCHEME_BEFORE = new RegExp(
  String.raw`(?<![${PART}])(?:mailto|e-?mail|tel|telephone|phone|callto|sms(?:to)?|mms(?:to)?|sips?|xmpp|im|pres|acct|facetime(?:-audio)?|skype|whatsapp):\p{Cf}*$`,
  'iu',
);
/** How far a part is searched for. */
const MOST_JOINTS = 32;

/** What encloses a value where it is not a sentence: quotes, and the signs of a form. */
const VALUE_BEFORE = /(?:^|["'=&])$/;
const VALUE_AFTER = /^(?:$|["'=&])/;

/**
 * Returns a text as it is, and with its percent-encoding and its escapes of JSON decoded: a text may be a URL, or JSON itself.
 */
export function formsOf(text: string): readonly string[] {
  const forms = new Set([text]);
  // A set visits what is added meanwhile. A text that was encoded several times has some more forms.
  for (const form of forms) {
    if (forms.size > 4) break;
    if (form.includes('%')) forms.add(percentDecoded(form));
    if (form.includes('\\')) forms.add(unescaped(form));
  }
  return [...forms];
}

/**
 * Whether a text, or a part of it, is the identifier. `customer-1` stands in "Order of customer-1.", but not in `customer-10`,
 * `x-customer-1` and `customer-1.eu`, which are other identifiers. Texts that are normalised differently are different. An e-mail
 * address or a telephone number may have the scheme of a URI before it.
 */
export function hasIdentifier(text: string, identifier: string): boolean {
  const isContact = CONTACT.test(identifier);
  return (
    text === identifier ||
    hasBetween(text, identifier, (before, after) => {
      const isWhole = ONLY_JOINTS.test(before) && ONLY_JOINTS.test(after);
      const isPartBefore = PART_BEFORE.test(before) && !(isContact && SCHEME_BEFORE.test(before));
      return !isWhole && !isPartBefore && !PART_AFTER.test(after);
    })
  );
}

/** Whether a text that is not JSON contains the identifier as a value. A short one is also a number or a word elsewhere. */
export function hasValue(text: string, identifier: string): boolean {
  return hasBetween(
    text,
    identifier,
    (before, after) => VALUE_BEFORE.test(before) && VALUE_AFTER.test(after),
  );
}

function hasBetween(
  text: string,
  identifier: string,
  isBetween: (before: string, after: string) => boolean,
): boolean {
  if (identifier === '') return false;
  for (let at = text.indexOf(identifier); at !== -1; at = text.indexOf(identifier, at + 1)) {
    const end = at + identifier.length;
    if (isBetween(text.slice(Math.max(0, at - MOST_JOINTS), at), text.slice(end, end + MOST_JOINTS))) {
      return true;
    }
  }
  return false;
}

/** Decodes percent-encoding as UTF-8. Leaves what is not a character as it is. */
function percentDecoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) => {
    try {
      return decodeURIComponent(bytes);
    } catch {
      return bytes;
    }
  });
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([0-9a-f]{4})|(["\\/bfnrt]))/gi, (_, unit?: string, short?: string) =>
    unit === undefined
      ? (ESCAPES[short ?? ''] ?? short ?? '')
      : String.fromCharCode(Number.parseInt(unit, 16)),
  );
}
