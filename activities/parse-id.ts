import { ApplicationFailure } from '@temporalio/activity';
import { isId } from '../src/domain/ids.ts';
import type { Id, IdKind } from '../src/domain/ids.ts';

/**
 * Returns an activity's argument as an id of that kind. Throws a failure that is not retried when it is malformed: the
 * arguments of an activity never change. The message omits the value, which may be anything.
 */
export function parseId<K extends IdKind>(kind: K, argument: unknown): Id<K> {
  if (typeof argument === 'string' && isId(kind, argument)) return argument;
  throw ApplicationFailure.nonRetryable(`the argument is not an id of the kind ${kind}`, 'InvalidId');
}
