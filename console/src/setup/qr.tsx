import { Anchor, Stack } from '@mantine/core';
import { useMemo } from 'react';
import { encode } from 'uqr';
import { saveFile } from '../parts/save-file.ts';

/** Pixels of one cell in a PNG: large enough for print. */
const CELL_PIXELS = 16;

function savePng(data: readonly (readonly boolean[])[], name: string): void {
  const canvas = document.createElement('canvas');
  canvas.width = data.length * CELL_PIXELS;
  canvas.height = canvas.width;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = '#000';
  data.forEach((row, y) =>
    row.forEach((isDark, x) => {
      if (isDark) context.fillRect(x * CELL_PIXELS, y * CELL_PIXELS, CELL_PIXELS, CELL_PIXELS);
    }),
  );
  canvas.toBlob((png) => {
    if (png !== null) saveFile(png, `${name}.png`);
  });
}

/** Returns the QR code of an address: its cells, and these as a path. */
function useQr(url: string) {
  return useMemo(() => {
    const code = encode(url, { border: 2 });
    const cells = code.data.flatMap((row, y) =>
      row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
    );
    return { size: code.size, data: code.data, path: cells.join('') };
  }, [url]);
}

/** The QR code of an address, to scan. `what` describes it. */
export function QrImage({ url, what }: { readonly url: string; readonly what: string }) {
  const { size, path } = useQr(url);
  return (
    <svg
      viewBox={`0 0 ${size} ${size}`}
      width="148"
      height="148"
      role="img"
      aria-label={what}
      shapeRendering="crispEdges"
      style={{ display: 'block', borderRadius: 8 }}
    >
      <path fill="#fff" d={`M0 0h${size}v${size}H0z`} />
      <path fill="#000" d={path} />
    </svg>
  );
}

/** The QR code of an address, to scan and to download as SVG and PNG. */
export function QrCode({ url, name }: { readonly url: string; readonly name: string }) {
  const { size, data, path } = useQr(url);
  const file = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`;
  return (
    <Stack gap={6} w={148}>
      <QrImage url={url} what={`QR code of ${url}`} />
      <Anchor
        size="sm"
        lh="24px"
        href={`data:image/svg+xml,${encodeURIComponent(file)}`}
        download={`${name}.svg`}
      >
        Download as SVG
      </Anchor>
      <Anchor
        component="button"
        type="button"
        size="sm"
        lh="24px"
        ta="left"
        onClick={() => savePng(data, name)}
      >
        Download as PNG
      </Anchor>
    </Stack>
  );
}
