#!/usr/bin/env node
// Proves without the service that a CSV is the one that was paid: node verify-payout.mjs APP_ID FILE.csv PAYOUTS.json [HASH]
// PAYOUTS.json is the list of all payouts of the app, from `payouts chain --app APP_ID` or the pages of GET /apps/:appId/payouts.
// HASH is a `chainHash` that was kept elsewhere since: with it, the proof does not depend on where PAYOUTS.json comes from.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const [appId, csvFile, payoutsFile, keptHash] = process.argv.slice(2);
if (payoutsFile === undefined) fail('usage: node verify-payout.mjs APP_ID FILE.csv PAYOUTS.json [HASH]');

const sha256 = (data) => createHash('sha256').update(data).digest('hex');
function fail(reason) {
  process.stderr.write(`NOT PROVED: ${reason}\n`);
  process.exit(1);
}

const parsed = JSON.parse(readFileSync(payoutsFile, 'utf8'));
const payouts = (Array.isArray(parsed) ? parsed : parsed.items).filter(({ chainHash }) => chainHash !== null);
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
if (keptHash !== undefined && !payouts.some(({ chainHash }) => chainHash === keptHash)) {
  fail(`no payout has the hash ${keptHash}, so the chain is another one`);
}

const csv = readFileSync(csvFile);
const paid = payouts.find(({ csvSha256 }) => csvSha256 === sha256(csv));
if (paid === undefined) fail(`no payout has a CSV with the SHA-256 ${sha256(csv)}`);
const cents = csv.toString('utf8').matchAll(/,(-?\d+),-?\d+\.\d\d,USD,[^,]+,\d+\r\n/g);
const total = [...cents].reduce((sum, [, amount]) => sum + Number(amount), 0);
if (total !== paid.totalCents)
  fail(`its rows add up to ${total} cents, and the payout is ${paid.totalCents}`);
process.stdout.write(
  `PROVED: ${csvFile} was paid as ${paid.id}, ${total} cents, at place ${paid.chainPosition} of ${payouts.length}; last hash ${previous}\n`,
);
