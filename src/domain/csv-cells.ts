/** The cells of every CSV of the service: of payouts, statements, lists, payout runs and reports of the command line. */

export const EOL = '\r\n';

/**
 * The start of a cell that a spreadsheet would run as a formula, in ASCII or full-width characters. A spreadsheet may split a
 * cell at a semicolon, a tab, a vertical bar or a line end, and drops quotes, spaces and characters that are not shown before a
 * formula, however many. The class has none of those that split, so the search never reads a character twice.
 */
const FORMULA =
  // oxlint-disable-next-line no-control-regex -- control characters are looked past on purpose
  /^(?=[\t\r])|(?<=^|[;|\t\r\n])(?=["'\p{Zs}\p{Zl}\p{Zp}\p{Cf}\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*[=+\-@＝＋－＠])/gu;

/**
 * Puts an apostrophe before each part of a text that a spreadsheet would run as a formula, so that it is shown as text. A payee's text that it
 * would change is refused: payment services would read the apostrophe.
 */
export function neutralizeFormula(text: string): string {
  return text.replaceAll(FORMULA, "'");
}

/** Quotes text as RFC 4180 requires, including a lone carriage return. */
export function quoteWhereNeeded(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a line of cells. */
export function csvLine(cells: readonly string[]): string {
  return cells.map(quoteWhereNeeded).join(',') + EOL;
}
