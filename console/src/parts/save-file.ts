/** How long the browser may take to read a file after the click, ms. */
const READ_MS = 60_000;

/** Saves a file from the page, as a click on a link to it does. */
export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), READ_MS);
}
