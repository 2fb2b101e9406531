import pg from 'pg';

/** Stops the statements that insert into a table, before their end. */
export interface Gate {
  /** Lets them end. */
  readonly open: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** Closes a gate: statements that insert into a table wait for a lock (`untilWaiting`) until it is opened. */
export async function closeGate(databaseUrl: string, table: string): Promise<Gate> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(`
    create function test_gate() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(2); return null; end $$;
    create trigger test_gate after insert on ${table} for each statement execute function test_gate();
    select pg_advisory_lock(2)`);
  return {
    open: async () => void (await client.query('select pg_advisory_unlock(2)')),
    remove: async () => {
      await client.query('select pg_advisory_unlock_all()');
      await client.query(`drop trigger test_gate on ${table}; drop function test_gate`);
      await client.end();
    },
  };
}
