import { InvalidArgumentError } from 'commander';

/** Returns a name without the spaces around it. Refuses one that the API would refuse. */
export function parseName(text: string): string {
  const name = text.trim();
  if (name.length < 1 || name.length > 200 || /[\p{Cc}\p{Surrogate}]/u.test(name)) {
    throw new InvalidArgumentError('The name must have 1 to 200 characters on one line.');
  }
  return name;
}
