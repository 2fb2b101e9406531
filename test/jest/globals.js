// The functions of Jest that a test file imports. `load.js` gives each importing file a copy: Jest makes them anew for each test file.
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } = globalThis;
