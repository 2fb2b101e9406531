// The privacy answers for the stores stand in one place, and agree with the privacy manifest of the Swift package.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const read = (path) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Returns the answers of the table, by the name of the manifest. */
async function readTable() {
  const lines = (await read('PRIVACY.md'))
    .split('\n')
    .filter((line) => line.includes('`NSPrivacyCollectedDataType'));
  return lines.map((line) => {
    const [, , apple, play, collected, linked, tracking, purpose, type] = line
      .split('|')
      .map((cell) => cell.trim());
    return { type: type.replaceAll('`', ''), apple, play, collected, linked, tracking, purpose };
  });
}

/** Returns what the manifest declares. */
async function readManifest() {
  const text = await read('swift/Sources/Tributary/PrivacyInfo.xcprivacy');
  const valueOf = (part, key) =>
    part
      .match(new RegExp(`<key>${key}</key>\\s*(?:<array>\\s*)?<(?:string>([^<]*)|(true|false)/)`))
      ?.slice(1)
      .find(Boolean);
  const [collected] = text.split('<key>NSPrivacyAccessedAPITypes</key>');
  return collected
    .split('<dict>')
    .slice(2)
    .map((part) => ({
      type: valueOf(part, 'NSPrivacyCollectedDataType'),
      linked: valueOf(part, 'NSPrivacyCollectedDataTypeLinked'),
      tracking: valueOf(part, 'NSPrivacyCollectedDataTypeTracking'),
      purpose: valueOf(part, 'NSPrivacyCollectedDataTypePurposes'),
      purposes: part.match(/<string>NSPrivacyCollectedDataTypePurpose/g)?.length,
    }));
}

const PURPOSES = {
  "Developer's Advertising or Marketing": 'NSPrivacyCollectedDataTypePurposeDeveloperAdvertising',
};
const FLAGS = { yes: 'true', no: 'false' };

test('the privacy manifest declares the answers of the table', async () => {
  const table = await readTable();
  assert.ok(table.length >= 3);
  const expected = table.map(({ type, linked, tracking, purpose }) => ({
    type,
    linked: FLAGS[linked],
    tracking: FLAGS[tracking],
    purpose: PURPOSES[purpose],
    purposes: 1,
  }));
  assert.deepEqual(await readManifest(), expected);
  assert.match(
    await read('swift/Sources/Tributary/PrivacyInfo.xcprivacy'),
    /<key>NSPrivacyTracking<\/key>\s*<false\/>/,
  );
});

test('the privacy manifest declares the reason for the time of a file, which the answers name', async () => {
  const [, apis] = (await read('swift/Sources/Tributary/PrivacyInfo.xcprivacy')).split(
    '<key>NSPrivacyAccessedAPITypes</key>',
  );
  const texts = [...apis.matchAll(/<string>([^<]*)/g)].map(([, text]) => text);
  assert.deepEqual(texts, ['NSPrivacyAccessedAPICategoryFileTimestamp', 'C617.1']);
  assert.match(await read('PRIVACY.md'), /`C617\.1`/);
});

test("the data type of the App Store is that of the manifest's name", async () => {
  for (const { apple, type } of await readTable())
    assert.equal(type, `NSPrivacyCollectedDataType${apple.replaceAll(' ', '')}`);
});

for (const path of ['js/react-native', 'kotlin', 'swift', 'flutter']) {
  test(`the README of ${path} refers to the privacy answers and has none of its own`, async () => {
    const text = await read(`${path}/README.md`);
    assert.match(text, /\]\((\.\.\/)+PRIVACY\.md\)/);
    assert.doesNotMatch(
      text,
      /[|*] *User IDs?|Personal info|Device or other IDs|Linked to the user|Data Not Linked/i,
    );
  });
}
