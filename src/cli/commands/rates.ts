import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { importRates } from '../../db/rates.ts';
import type { RatesFile } from '../../domain/exchange-rate.ts';
import { RatesFileError } from '../../rates/parse-rates.ts';
import { MAX_RATES_BYTES, readRatesFile } from '../../rates/read-rates-file.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { inputPath } from '../input-path.ts';
import { CommandFailedError } from '../output.ts';

/** Reads a file of rates. `name` is relative to the folder in which npm was started. Errors name the file. */
async function readRates(name: string): Promise<RatesFile> {
  const path = inputPath(name);
  const chunks: Buffer[] = [];
  try {
    // One byte over the limit is enough for readRatesFile to refuse the file, however long it is.
    for await (const chunk of createReadStream(path, { end: MAX_RATES_BYTES })) chunks.push(chunk as Buffer);
  } catch (error) {
    throw new CommandFailedError(`${path} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  try {
    return readRatesFile(Buffer.concat(chunks), Date.now());
  } catch (error) {
    throw error instanceof RatesFileError ? new CommandFailedError(`${path}: ${error.message}`) : error;
  }
}

/** Adds `rates import`. */
export function addRatesCommand(program: Command, { withDatabase, print, stderr }: CommandContext): void {
  const rates = program.command('rates').description('manage exchange rates to US dollars');
  rates
    .command('import')
    .description("import the European Central Bank's CSV file, or one with date,currency,usd_rate")
    .argument('<file>', 'a CSV file, or a ZIP archive with one CSV file')
    .option(...JSON_OPTION)
    .action(async (path: string, options: JsonOptions) => {
      const file = await readRates(path);
      const imported = await withDatabase((sql) => importRates(sql, file));
      const result = { source: file.source, rates: file.rates.length, ...imported };
      print(result, [result], options);
      stderr('The running service processes the payments that waited for one of these rates.\n');
    });
}
