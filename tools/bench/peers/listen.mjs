import { createServer } from 'node:http';

/** Serves `POST /`, prints its port, and ends with its parent. `handle` receives the text and the headers of a request. */
export function listen(handle) {
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      void handle(Buffer.concat(chunks).toString(), request.headers).then(
        (answer) => response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)),
        (error) => response.writeHead(500).end(JSON.stringify({ error: String(error?.stack ?? error) })),
      );
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
  process.once('disconnect', () => process.exit());
}
