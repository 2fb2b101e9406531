import { ERRORS } from '../../src/http/errors.ts';
import type { ErrorCode } from '../../src/http/errors.ts';
import { errorCodesOf } from '../../src/http/openapi.ts';
import type { Route } from '../../src/http/route.ts';

/** Codes that belong to no single operation. */
const EVERYWHERE: readonly ErrorCode[] = [
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'internal_error',
];

function answeredBy(code: ErrorCode, routes: readonly Route[]): string {
  if (EVERYWHERE.includes(code)) return 'any path';
  const operations = routes.filter((route) => errorCodesOf(route).includes(code));
  if (operations.length > 6) return `${operations.length} of ${routes.length} operations`;
  return operations.map(({ method, path }) => `\`${method} ${path}\``).join(', ');
}

/** `docs/errors.md`, made of the one table of errors and of what each route says that it answers. */
export function errorsPage(routes: readonly Route[]): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map((code) => {
    const [status, title, advice] = ERRORS[code];
    return `| <a id="${code}"></a>\`${code}\` | ${status} | ${title} | ${advice} | ${answeredBy(code, routes)} |`;
  });
  return `# Errors

This page is made of the table in \`src/http/errors.ts\` by \`npm run docs:write\`; a test compares them.

An error is \`application/problem+json\` (RFC 9457):

\`\`\`json
{
  "type": "urn:tributary:error:slug_taken",
  "title": "The slug is taken",
  "status": 409,
  "detail": "Another link of this app has that slug, perhaps in another case.",
  "code": "slug_taken",
  "requestId": "6e1c9f0a-2b7d-4c55-9a3e-1f2d3c4b5a69"
}
\`\`\`

\`code\` is stable: tell errors apart by it. \`detail\` is for people and may change. A 400 has \`errors\`, a list of
\`{ path, message }\`, where a path has names and indexes with dots between (\`rows.3.slug\`). \`requestId\` is also the
\`X-Request-Id\` of every answer, and stands in the log. A 429 and a 503 say in \`Retry-After\` how many seconds to wait.
Which operation answers which error is in [the description of the API](contract.md#the-description-of-the-api).

| Code | Status | What it is | What to do | Answered by |
|---|---|---|---|---|
${rows.join('\n')}
`;
}
