# syntax=docker/dockerfile:1
# The image of the service, of the migrations and of the command line (tributary). docs/deploy.md describes it.
# The secrets are for a machine whose npm has settings of its own: docs/deploy.md#the-image.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY console/package.json ./console/
RUN --mount=type=secret,id=npmrc --mount=type=secret,id=ca \
  NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY tools ./tools
COPY src ./src
COPY activities ./activities
COPY workflows ./workflows
COPY temporal ./temporal
COPY console ./console
# Without its pages, the build fails.
RUN CI=true npm run build:service

FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY console/package.json ./console/
# Without the built-in Postgres. The SDK of Temporal has a library of 25 to 30 MB for each platform: only this one's is kept.
# Source maps, and TypeScript of packages with its declarations, are not read at run time.
RUN --mount=type=secret,id=npmrc --mount=type=secret,id=ca \
  NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && case "$(uname -m)" in x86_64) keep=x86_64-unknown-linux-gnu ;; *) keep=aarch64-unknown-linux-gnu ;; esac \
  && find node_modules/@temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 ! -name "$keep" -exec rm -r {} + \
  && find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.tsbuildinfo' \) -delete

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY src/db/migrations ./src/db/migrations
COPY deploy/health-check.mjs ./deploy/health-check.mjs
RUN chmod +x dist/src/cli/main.js && ln -s /app/dist/src/cli/main.js /usr/local/bin/tributary
# The user "node" of the base image, by number, so that Kubernetes can check that it is not root. It can write nowhere.
USER 1000:1000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "deploy/health-check.mjs"]
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
