import pg from 'pg';

/** Returns the URL of another database on the same server. */
export function inDatabase(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.toString();
}

/** Runs one statement on a new connection. */
export async function runOn(url: string, statement: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Creates a database, empty or as a copy of a template. */
export async function createDatabase(serverUrl: string, name: string, template?: string): Promise<void> {
  const from = template === undefined ? '' : ` template "${template}" strategy file_copy`;
  await runOn(serverUrl, `create database "${name}"${from}`);
}
