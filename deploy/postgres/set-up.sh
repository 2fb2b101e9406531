#!/bin/sh
# Creates the roles and databases of Tributary and of the Temporal server, and sets their passwords. Safe to run again. psql
# connects by its standard variables (PGHOST, PGUSER, PGPASSWORD, …) with a role that may create roles and databases.
set -eu

for name in OWNER_PASSWORD SERVICE_PASSWORD TEMPORAL_PASSWORD; do
  eval "value=\${$name:-}"
  if [ -z "$value" ]; then
    echo "$name is missing: set it to the output of \"openssl rand -hex 24\"." >&2
    exit 1
  fi
done

# \password of psql asks twice for each password. It reads the terminal if there is one, so setsid runs psql without. printf is
# part of the shell: no other process shows the passwords.
printf '%s\n' "$OWNER_PASSWORD" "$OWNER_PASSWORD" "$SERVICE_PASSWORD" "$SERVICE_PASSWORD" \
  "$TEMPORAL_PASSWORD" "$TEMPORAL_PASSWORD" |
  setsid psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname "${PGDATABASE:-postgres}" \
    --set database="${TRIBUTARY_DATABASE:-tributary}" \
    --file "$(dirname "$0")/set-up.sql"
