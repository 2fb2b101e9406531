#!/usr/bin/env node
// Proves without the service that a CSV is the one that was paid:
//   node verify-payout.mjs APP_ID FILE.csv [--hash HASH] PAYOUTS.json...
// The PAYOUTS.json are all payouts of the app: the file of `payouts chain --app APP_ID`, or every page of GET /apps/:appId/payouts.
// HASH is the `chainHash` of this payout or a later one, kept where the operator of the service cannot write. Without it, only
// mistakes are excluded: whoever can change the database can compute another chain.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({ options: { hash: { type: 'string' } }, allowPositionals: true });
const [appId, csvFile, ...payoutFiles] = positionals;
if (payoutFiles.length === 0)
  fail('usage: node verify-payout.mjs APP_ID FILE.csv [--hash HASH] PAYOUTS.json...');

const sha256 = (data) => createHash('sha256').update(data).digest('hex');
function fail(reason) {
  process.stderr.write(`NOT PROVED: ${reason}\n`);
  process.exit(1);
}

const read = payoutFiles.flatMap((file) => {
  const parsed = JSON.parse(readFileSync(file, 'utf8'));
  return Array.isArray(parsed) ? parsed : parsed.items;
});
// Pages that were read at different times may overlap.
const payouts = [
  ...new Map(read.map((payout) => [`${payout.chainPosition} ${payout.chainHash}`, payout])).values(),
].filter(({ chainHash }) => chainHash !== null);
payouts.sort((a, b) => a.chainPosition - b.chainPosition);

let previous = null;
for (const [index, payout] of payouts.entries()) {
  const { id, totalCents, csvSha256, chainPosition, chainPreviousHash, chainHash } = payout;
  const place = `payout ${id} at place ${chainPosition}`;
  if (chainPosition !== index + 1) fail(`the list lacks the payout at place ${index + 1}`);
  if (chainPreviousHash !== previous) fail(`${place} does not follow the payout before it`);
  const text = [previous ?? '', appId, chainPosition, id, totalCents, csvSha256, ''].join('\n');
  if (sha256(text) !== chainHash) fail(`${place} was changed`);
  previous = chainHash;
}
const csv = readFileSync(csvFile);
const paid = payouts.find(({ csvSha256 }) => csvSha256 === sha256(csv));
if (paid === undefined) fail(`no payout has a CSV with the SHA-256 ${sha256(csv)}`);
const cents = csv.toString('utf8').matchAll(/,(-?\d+),-?\d+\.\d\d,USD,[^,]*,\d+\r\n/g);
const total = [...cents].reduce((sum, [, amount]) => sum + Number(amount), 0);
if (total !== paid.totalCents)
  fail(`its rows add up to ${total} cents, and the payout is ${paid.totalCents}`);
if (values.hash !== undefined) {
  // Anything can be appended after a hash, so it proves only what is at its place or before.
  const kept = payouts.find(({ chainHash }) => chainHash === values.hash);
  if (kept === undefined || kept.chainPosition < paid.chainPosition)
    fail(`the kept hash is not in the chain at place ${paid.chainPosition} or later`);
}
process.stdout.write(
  `PROVED: ${csvFile} was paid as ${paid.id}, ${total} cents, at place ${paid.chainPosition} of ${payouts.length}; last hash ${previous}\n`,
);
process.stdout.write(
  values.hash === undefined ? 'Without --hash, only mistakes are excluded.\n' : 'The kept hash covers it.\n',
);
