// What modules that test files share import of Jest. They define no tests: those would be of the file that loaded them first.
export const { expect } = globalThis;
