/** The status codes of gRPC that this service tells apart. */
export const GRPC = {
  invalidArgument: 3,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  unimplemented: 12,
  unauthenticated: 16,
} as const;

/** Returns the gRPC status code of an error; undefined for an error of another kind. */
export function grpcCode(error: unknown): number | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
    ? error.code
    : undefined;
}

/** Returns what went wrong in one line: the server's own words when it responded. */
export function reasonOf(error: unknown): string {
  const details: unknown =
    typeof error === 'object' && error !== null && 'details' in error ? error.details : '';
  if (typeof details === 'string' && details !== '') return details.replace(/\.$/, '');
  return error instanceof Error ? error.message : String(error);
}
