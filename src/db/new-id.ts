import { typeid } from 'typeid-js';
import { ID_PREFIXES } from '../domain/ids.ts';
import type { Id, IdKind } from '../domain/ids.ts';

/** Returns a new id: the kind's prefix and a UUIDv7, so that ids sort by creation time. */
export function newId<K extends IdKind>(kind: K): Id<K> {
  return typeid(ID_PREFIXES[kind]).toString() as string as Id<K>;
}
