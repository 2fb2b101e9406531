/**
 * Zone names that Postgres reads as abbreviations with a fixed offset, and the zones that they are aliases of in the time
 * zone database since 2024b, with daylight saving time.
 */
const READ_AS_ABBREVIATIONS: Readonly<Record<string, string>> = {
  CET: 'Europe/Brussels',
  EET: 'Europe/Athens',
  EST: 'America/Panama',
  HST: 'Pacific/Honolulu',
  MET: 'Europe/Brussels',
  MST: 'America/Phoenix',
  WET: 'Europe/Lisbon',
};

/** The other zone names of three letters. */
const SHORT_NAMES: ReadonlySet<string> = new Set(['GMT', 'PRC', 'ROC', 'ROK', 'UCT', 'UTC']);

/**
 * Returns the name by which Postgres knows a zone of the IANA time zone database, for any of its names in any case, or
 * undefined for anything else. Postgres also accepts abbreviations and reads any `word5` as five hours west of Greenwich,
 * so the JavaScript runtime must know the name first. The runtime accepts other abbreviations (`PST`, with daylight saving
 * time) and offsets, whose sign Postgres reads the other way round, so these are refused here.
 */
export function databaseTimeZone(name: string): string | undefined {
  const upper = name.toUpperCase();
  const known = READ_AS_ABBREVIATIONS[upper] ?? name;
  if (known === name && /^[A-Z]{3}$/.test(upper) && !SHORT_NAMES.has(upper)) return undefined;
  if (!/^[A-Z]/.test(upper) || upper.startsWith('SYSTEMV/')) return undefined;
  try {
    Intl.DateTimeFormat('en', { timeZone: known });
  } catch {
    return undefined;
  }
  return known;
}
