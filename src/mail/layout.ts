import { HIDDEN_CLASS } from '../domain/hidden-characters.ts';

/** A text of somebody else, such as a name: shown in its own direction, and never as markup. */
export interface Foreign {
  readonly foreign: string;
}

export type Part = string | Foreign;

/** A piece of a mail. `facts` are lines with a label. A `code` stands alone, to be copied. The first column of a `table` has names, the others numbers. */
export type Block =
  | { readonly type: 'paragraph'; readonly parts: readonly Part[] }
  | { readonly type: 'button'; readonly label: string; readonly url: string }
  | { readonly type: 'facts'; readonly facts: readonly (readonly [label: string, value: Part])[] }
  | { readonly type: 'code'; readonly code: string }
  | { readonly type: 'heading'; readonly text: string }
  | { readonly type: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly Part[])[] }
  | { readonly type: 'list'; readonly items: readonly (readonly Part[])[] };

/** What a mail says, once for both of its forms. */
export interface MailContent {
  readonly subject: readonly Part[];
  readonly blocks: readonly Block[];
  /** Why the reader gets it, in small print. */
  readonly footer: readonly Part[];
}

/** A mail as it is sent. */
export interface MailText {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Characters without a picture of their own: line breaks and other controls, and those that change the direction of a text. */
const HIDDEN = new RegExp(String.raw`[\p{Cc}${HIDDEN_CLASS}]+`, 'gu');
const RIGHT_TO_LEFT =
  /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\p{Script=Adlam}/u;
const ISOLATE = ['\u2068', '\u2069'] as const;
/** The longest name in a subject, in characters as a reader counts them. */
const SUBJECT_NAME = 60;

function clean(text: string): string {
  return text.replace(HIDDEN, ' ').trim();
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

function shortened(name: string): string {
  const characters = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(name)];
  if (characters.length <= SUBJECT_NAME) return name;
  return `${characters
    .slice(0, SUBJECT_NAME - 1)
    .map(({ segment }) => segment)
    .join('')}…`;
}

const inSubject = (parts: readonly Part[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : shortened(clean(part.foreign)))).join('');

function inText(part: Part): string {
  if (typeof part === 'string') return part;
  const text = clean(part.foreign);
  return RIGHT_TO_LEFT.test(text) ? ISOLATE[0] + text + ISOLATE[1] : text;
}

const inHtml = (part: Part): string =>
  typeof part === 'string' ? escapeHtml(part) : `<bdi>${escapeHtml(clean(part.foreign))}</bdi>`;

const joined = (parts: readonly Part[], form: (part: Part) => string): string => parts.map(form).join('');

function textOfBlock(block: Block): string {
  switch (block.type) {
    case 'paragraph':
      return joined(block.parts, inText);
    case 'button':
      return `${block.label}:\n${block.url}`;
    case 'facts':
      return block.facts.map(([label, value]) => `${label}: ${inText(value)}`).join('\n');
    case 'code':
      return `    ${block.code}`;
    case 'heading':
      return block.text.toUpperCase();
    case 'table':
      return textOfTable([block.head, ...block.rows]);
    case 'list':
      return block.items.map((parts) => `- ${joined(parts, inText)}`).join('\n');
  }
}

/** How many cells of a fixed font a text takes, as far as that can be known. */
const widthOf = (text: string): number =>
  [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)].length;

/** Returns a table as lines: the first column to the left, the others to the right. */
function textOfTable(rows: readonly (readonly Part[])[]): string {
  const cells = rows.map((row) => row.map(inText));
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => widthOf(row[column] ?? ''))),
  );
  return cells
    .map((row) =>
      row
        .map((text, column) => {
          const space = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)));
          return column === 0 ? text + space : space + text;
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function htmlOfRow(cells: readonly Part[], tag: 'th' | 'td'): string {
  const html = cells.map((cell, column) => {
    const name = column === 0 ? 'name' : 'number';
    const scope = tag === 'th' ? ' scope="col"' : '';
    return `<${tag} class="${name}"${scope}>${inHtml(cell)}</${tag}>`;
  });
  return `<tr>${html.join('')}</tr>`;
}

function htmlOfBlock(block: Block): string {
  switch (block.type) {
    case 'paragraph':
      return `<p class="text">${joined(block.parts, inHtml)}</p>`;
    case 'button': {
      const url = escapeHtml(block.url);
      return `<p class="action"><a class="button" href="${url}">${escapeHtml(block.label)}</a></p>
<p class="small">If the button does not work, copy this address: <span class="address">${url}</span></p>`;
    }
    case 'facts':
      return `<dl class="facts">${block.facts
        .map(([label, value]) => `<dt>${escapeHtml(label)}</dt><dd>${inHtml(value)}</dd>`)
        .join('')}</dl>`;
    case 'code':
      return `<p class="code">${escapeHtml(block.code)}</p>`;
    case 'heading':
      return `<h2>${escapeHtml(block.text)}</h2>`;
    case 'table':
      return `<table>
${[htmlOfRow(block.head, 'th'), ...block.rows.map((row) => htmlOfRow(row, 'td'))].join('\n')}
</table>`;
    case 'list':
      return `<ul>${block.items.map((parts) => `<li>${joined(parts, inHtml)}</li>`).join('')}</ul>`;
  }
}

/** The colors of the console, light and dark. A reader that knows no dark form shows the light one. */
const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0; padding: 24px 12px; background: #f4f5f7; color: #1b1f27; font: 16px/1.55 -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; -webkit-text-size-adjust: 100%; }
.card { max-width: 560px; margin: 0 auto; padding: 28px 28px 20px; background: #ffffff; border: 1px solid #e1e4ea; border-radius: 10px; overflow-wrap: anywhere; word-break: break-word; }
.app { margin: 0 0 20px; font-weight: 600; }
.text { margin: 0 0 16px; }
.action { margin: 24px 0 12px; }
.button { display: inline-block; padding: 11px 20px; border-radius: 8px; background: #1f5fd6; color: #ffffff; font-weight: 600; text-decoration: none; }
.small { margin: 0 0 16px; color: #5c6472; font-size: 13px; }
.address { display: block; word-break: break-all; }
.facts { margin: 0 0 16px; padding: 14px 18px; background: #f4f5f7; border-radius: 8px; }
.facts dt { color: #5c6472; font-size: 13px; }
.facts dd { margin: 0 0 10px; font-weight: 600; }
.facts dd:last-child { margin-bottom: 0; }
.code { margin: 20px 0; padding: 16px; background: #f4f5f7; border-radius: 8px; text-align: center; font: 600 26px/1.2 ui-monospace, Menlo, Consolas, monospace; letter-spacing: 4px; }
h2 { margin: 24px 0 8px; font-size: 16px; line-height: 1.4; }
table { width: 100%; margin: 0 0 16px; border-collapse: collapse; font-size: 15px; }
th, td { padding: 7px 0 7px 12px; border-bottom: 1px solid #e1e4ea; text-align: right; vertical-align: top; }
th { color: #5c6472; font-size: 13px; font-weight: 400; }
.name { padding-left: 0; text-align: left; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
ul { margin: 0 0 16px; padding-left: 20px; }
li { margin: 0 0 6px; }
.foot { margin: 20px 0 0; padding-top: 14px; border-top: 1px solid #e1e4ea; color: #5c6472; font-size: 13px; }
@media (max-width: 480px) {
  body { padding: 12px 6px; }
  .card { padding: 20px 16px 16px; }
  table { font-size: 14px; }
  th, td { padding-left: 8px; }
}
@media (prefers-color-scheme: dark) {
  body { background: #12151b; color: #e7eaf0; }
  .card { background: #1b1f27; border-color: #303643; }
  .facts, .code { background: #12151b; }
  .small, .facts dt, .foot, th { color: #a3acbb; }
  .foot, th, td { border-color: #303643; }
  .button { background: #4d8bff; color: #0b1020; }
}`.trim();

function page(title: string, appName: string, { blocks, footer }: MailContent): string {
  return `<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(title)}</title>
<style>
${STYLE}
</style>
</head>
<body>
<div class="card">
<p class="app">${inHtml({ foreign: appName })}</p>
${blocks.map(htmlOfBlock).join('\n')}
<p class="foot">${joined(footer, inHtml)}</p>
</div>
</body>
</html>
`;
}

/** Returns both forms of a mail. Texts of others are escaped, and cannot add a line or change the direction of what is around them. */
export function layOut(appName: string, content: MailContent): MailText {
  const subject = inSubject(content.subject);
  const text = [...content.blocks.map(textOfBlock), `-- \n${joined(content.footer, inText)}`].join('\n\n');
  return { subject, text: `${text}\n`, html: page(subject, appName, content) };
}
