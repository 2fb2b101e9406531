#!/bin/sh
# Creates the namespace and its search attributes on the Temporal server at TEMPORAL_ADDRESS. Safe to run again.
set -eu

namespace=${TEMPORAL_NAMESPACE:-default}
attempts=60
until temporal operator cluster health >/dev/null 2>&1; do
  attempts=$((attempts - 1))
  if [ "$attempts" -eq 0 ]; then
    echo "The Temporal server at $TEMPORAL_ADDRESS does not respond: read its log, then start again." >&2
    exit 1
  fi
  sleep 1
done

# A new server refuses calls to a namespace for a few seconds until all of its services know it. A service that runs already
# may create the namespace at the same moment: then the next look finds it.
attempts=30
until temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$namespace" --retention "${TEMPORAL_RETENTION:-7d}"; do
  attempts=$((attempts - 1))
  if [ "$attempts" -eq 0 ]; then
    echo "The namespace $namespace could not be created: see the messages above." >&2
    exit 1
  fi
  sleep 1
done
attempts=30
for name in DeliveryState AppId Provider; do
  until temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword; do
    attempts=$((attempts - 1))
    if [ "$attempts" -eq 0 ]; then
      echo "The search attribute $name could not be created in the namespace $namespace: see the messages above." >&2
      exit 1
    fi
    sleep 1
  done
done
