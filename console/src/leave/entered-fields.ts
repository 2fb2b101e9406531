type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/**
 * The fields whose content counts as entered. A password manager fills fields for keys by itself, and a search enters nothing: what
 * is chosen by one is in a hidden field. What takes effect when it is changed has the attribute `data-saved-at-once`.
 */
const FIELDS =
  'input:not([type=password], [type=search], [aria-haspopup=listbox], [data-saved-at-once]), select, textarea';

/** Returns what a field holds. Several choices are a set: their order is that of the clicks. */
function contentOf(field: Field): string {
  if (!(field instanceof HTMLInputElement)) return field.value;
  if (field.type === 'checkbox' || field.type === 'radio') return String(field.checked);
  return field.type === 'hidden' ? field.value.split(',').toSorted().join() : field.value;
}

/** What the fields of a dialog held when each was first shown, or when it was last saved. */
export interface EnteredFields {
  /** Watches an element for fields, also for those of later steps, until the function that it returns is called. */
  readonly watch: (root: HTMLElement) => () => void;
  /** Takes what the fields hold now as not entered, and forgets the fields that are gone. */
  readonly begin: () => void;
  /** Whether a field holds something else than then, also one of a step that is not shown any more. */
  readonly isEntered: () => boolean;
  /** Notes what the fields hold when a call to save it is sent. */
  readonly noteSent: (call: object) => void;
  /** Takes what they held then as saved. */
  readonly noteSaved: (call: object) => void;
}

export function createEnteredFields(): EnteredFields {
  const saved = new Map<Field, string>();
  const sent = new WeakMap<object, ReadonlyMap<Field, string>>();
  let root: HTMLElement | null = null;
  const find = () => {
    for (const field of root?.querySelectorAll<Field>(FIELDS) ?? [])
      if (!saved.has(field)) saved.set(field, contentOf(field));
  };
  return {
    watch: (element) => {
      root = element;
      find();
      const observer = new MutationObserver(find);
      observer.observe(element, { childList: true, subtree: true });
      return () => {
        observer.disconnect();
        root = null;
      };
    },
    begin: () => {
      saved.clear();
      find();
    },
    isEntered: () => [...saved].some(([field, content]) => contentOf(field) !== content),
    noteSent: (call) => {
      sent.set(call, new Map([...saved.keys()].map((field) => [field, contentOf(field)])));
    },
    noteSaved: (call) => {
      for (const [field, content] of sent.get(call) ?? []) saved.set(field, content);
    },
  };
}

/** The fields of the dialogs that are open. */
const open = new Set<EnteredFields>();

/** Lets calls that save count for the fields of a dialog, until the function that it returns is called. */
export function openFields(fields: EnteredFields): () => void {
  fields.begin();
  open.add(fields);
  return () => {
    open.delete(fields);
    fields.begin();
  };
}

/** Notes that a call was sent that saves what is entered in open dialogs. */
export function noteSent(call: object): void {
  for (const fields of open) fields.noteSent(call);
}

/** Notes that the call has saved what was entered when it was sent. */
export function noteSaved(call: object): void {
  for (const fields of open) fields.noteSaved(call);
}
