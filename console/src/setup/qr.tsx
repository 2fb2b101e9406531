import { Anchor } from '@mantine/core';
import { useMemo } from 'react';
import { encode } from 'uqr';

/** The QR code of an address, to scan and to download as SVG. */
export function QrCode({ url, name }: { readonly url: string; readonly name: string }) {
  const { size, path } = useMemo(() => {
    const code = encode(url, { border: 2 });
    const cells = code.data.flatMap((row, y) =>
      row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
    );
    return { size: code.size, path: cells.join('') };
  }, [url]);
  const file = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`;
  return (
    <div style={{ width: 148 }}>
      <svg
        viewBox={`0 0 ${size} ${size}`}
        width="148"
        height="148"
        role="img"
        aria-label={`QR code of ${url}`}
        shapeRendering="crispEdges"
        style={{ display: 'block', borderRadius: 8 }}
      >
        <path fill="#fff" d={`M0 0h${size}v${size}H0z`} />
        <path fill="#000" d={path} />
      </svg>
      <Anchor size="sm" href={`data:image/svg+xml,${encodeURIComponent(file)}`} download={`${name}.svg`}>
        Download as SVG
      </Anchor>
    </div>
  );
}
