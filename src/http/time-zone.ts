/**
 * Names that Postgres takes for an abbreviation with one fixed offset, and the zones that the time zone database has made
 * them other names of (since 2024b). So they mean here what they mean there, summer time and all.
 */
const TAKEN_FOR_ABBREVIATIONS: Readonly<Record<string, string>> = {
  CET: 'Europe/Brussels',
  EET: 'Europe/Athens',
  EST: 'America/Panama',
  HST: 'Pacific/Honolulu',
  MET: 'Europe/Brussels',
  MST: 'America/Phoenix',
  WET: 'Europe/Lisbon',
};

/** The other names of three letters. */
const SHORT_NAMES: ReadonlySet<string> = new Set(['GMT', 'PRC', 'ROC', 'ROK', 'UCT', 'UTC']);

/**
 * The name under which Postgres knows a zone of the IANA time zone database, in whatever case and under whichever of its
 * names it was asked for; undefined for anything else. Postgres by itself would also take abbreviations, and it reads
 * any `word5` as five hours west of Greenwich, so a name has to be one for this runtime first. The runtime in turn knows
 * abbreviations of its own (`PST`, with summer time) and offsets, which mean the opposite to Postgres: neither counts.
 */
export function databaseTimeZone(name: string): string | undefined {
  const upper = name.toUpperCase();
  const known = TAKEN_FOR_ABBREVIATIONS[upper] ?? name;
  if (known === name && /^[A-Z]{3}$/.test(upper) && !SHORT_NAMES.has(upper)) return undefined;
  if (!/^[A-Z]/.test(upper) || upper.startsWith('SYSTEMV/')) return undefined;
  try {
    Intl.DateTimeFormat('en', { timeZone: known });
  } catch {
    return undefined;
  }
  return known;
}
