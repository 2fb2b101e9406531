import { expect, test } from '@jest/globals';
import { textOn } from '../src/creator/brand.ts';

/** The relative luminance of WCAG 2.2, written once more. */
function luminance(color: string): number {
  const parts = (color.match(/[0-9a-f]{2}/g) ?? []).map((part) => Number.parseInt(part, 16) / 255);
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test('a text on any colour of an app has a contrast of at least 4.5 to 1', () => {
  const parts = Array.from({ length: 18 }, (_, index) => (index * 15).toString(16).padStart(2, '0'));
  const low: string[] = [];
  for (const red of parts)
    for (const green of parts)
      for (const blue of parts) {
        const color = `#${red}${green}${blue}`;
        const [dark, light] = [luminance(color), luminance(textOn(color))].toSorted((a, b) => a - b);
        if (((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05) < 4.5) low.push(color);
      }
  expect(low).toEqual([]);
  expect([textOn('#ffd400'), textOn('#0b7285')]).toEqual(['#000000', '#ffffff']);
});
