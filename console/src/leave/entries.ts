import { isStartingAnew } from './start-anew.ts';

/** A dialog or a form: where data is entered that is lost when it is closed, or when the page is left. */
interface Place {
  /** Whether it holds data that was entered and not saved. */
  readonly holds: () => boolean;
  /** Asks whether the data may be lost. Calls `go` if so. */
  readonly ask: (go: () => void) => void;
}

/** The dialogs and forms that are shown, the one in front last. */
const places: Place[] = [];

/** Returns whether a dialog or a form of the page holds data that was entered and not saved. */
export const holdsEntries = (): boolean => places.some(({ holds }) => holds());

/** Lets the browser ask before the tab is closed, reloaded or leads to another site. */
function askByBrowser(event: BeforeUnloadEvent): void {
  if (!isStartingAnew() && holdsEntries()) event.preventDefault();
}

/** Asks about what a dialog or a form holds before the page is left, until the function that it returns is called. */
export function addPlace(place: Place): () => void {
  if (places.length === 0) addEventListener('beforeunload', askByBrowser);
  places.push(place);
  return () => {
    places.splice(places.indexOf(place), 1);
    if (places.length === 0) removeEventListener('beforeunload', askByBrowser);
  };
}

/** Leaves the page by `go`: at once if nothing entered is lost, else if the person agrees. One question is about all that is entered. */
export function askToLeave(go: () => void): void {
  const place = places.findLast(({ holds }) => holds());
  if (place === undefined) go();
  else place.ask(go);
}
