import { createHash } from 'node:crypto';

/**
 * A set of ids that takes eight bytes for each: it holds the first 64 bits of their SHA-256. Among ten million ids, another
 * one is taken for a member with a probability of one in 10¹².
 */
export class IdSet {
  #slots = new BigUint64Array(1024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(id: string): void {
    if (2 * this.#size >= this.#slots.length) this.#grow();
    if (this.#insert(digest(id))) this.#size += 1;
  }

  has(id: string): boolean {
    const value = digest(id);
    return this.#slots[this.#slotOf(value)] === value;
  }

  #insert(value: bigint): boolean {
    const slot = this.#slotOf(value);
    const isNew = this.#slots[slot] === 0n;
    this.#slots[slot] = value;
    return isNew;
  }

  /** Returns the slot of a value, or the free one where it belongs. */
  #slotOf(value: bigint): number {
    const mask = this.#slots.length - 1;
    let slot = Number(value & 0xffff_ffffn) & mask;
    while (this.#slots[slot] !== 0n && this.#slots[slot] !== value) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new BigUint64Array(2 * before.length);
    for (const value of before) if (value !== 0n) this.#insert(value);
  }
}

/** Returns the start of the hash of an id. Zero marks a free slot. */
function digest(id: string): bigint {
  const value = createHash('sha256').update(id).digest().readBigUInt64LE();
  return value === 0n ? 1n : value;
}
