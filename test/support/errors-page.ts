import { ERRORS } from '../../src/http/error-codes.ts';
import type { ErrorCode } from '../../src/http/error-codes.ts';
import { errorCodesOf } from '../../src/http/openapi.ts';
import type { Route } from '../../src/http/routing/route.ts';

/** Codes that any operation may return. */
const ANY_PATH: readonly ErrorCode[] = [
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'internal_error',
];

function returnedBy(code: ErrorCode, routes: readonly Route[]): string {
  if (ANY_PATH.includes(code)) return 'any path';
  const operations = routes.filter((route) => errorCodesOf(route).includes(code));
  if (operations.length === routes.length) return 'every operation';
  if (operations.length > routes.length / 2) return 'most operations';
  // Words instead of numbers, so that a new route seldom changes the page.
  if (operations.length > 6) return 'several operations';
  return operations.map(({ method, path }) => `\`${method} ${path}\``).join(', ');
}

/** Returns `docs/errors.md`, generated from the table of errors and the errors that each route declares. */
export function errorsPage(routes: readonly Route[]): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map((code) => {
    const [status, title, advice] = ERRORS[code];
    return `| <a id="${code}"></a>\`${code}\` | ${status} | ${title} | ${advice} | ${returnedBy(code, routes)} |`;
  });
  return `# Errors

This page is generated from \`src/http/error-codes.ts\` by \`npm run docs:write\`.

An error response has the content type \`application/problem+json\` (RFC 9457):

\`\`\`json
{
  "type": "urn:tributary:error:slug_taken",
  "title": "The slug is taken",
  "status": 409,
  "detail": "Another link of this app has this slug. Slugs are compared without case. Choose another slug.",
  "code": "slug_taken",
  "requestId": "6e1c9f0a-2b7d-4c55-9a3e-1f2d3c4b5a69"
}
\`\`\`

- \`code\` is stable. Use it to tell errors apart.
- \`detail\` explains this error to people. Its text may change.
- \`errors\` lists the invalid fields of a 400 as \`{ path, message }\`. A path is names and indexes, separated by dots, such
  as \`rows.3.slug\`.
- \`requestId\` identifies the request in the log. It equals the \`X-Request-Id\` header, which every response has.
- The \`Retry-After\` header of a 429 or 503 states how many seconds to wait.
- A call with an \`Idempotency-Key\` that got a 404 or a 409 gets it again for a day. When you have removed the cause, send the
  call with a new key.

[The OpenAPI document](contract.md#the-description-of-the-api) lists the errors of each operation.

| Code | Status | Meaning | What to do | Returned by |
|---|---|---|---|---|
${rows.join('\n')}
`;
}
