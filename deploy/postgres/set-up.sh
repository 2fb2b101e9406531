#!/bin/sh
# Creates the roles and databases of Tributary and of the Temporal server, and sets their passwords. Safe to run again. psql
# connects by its standard variables (PGHOST, PGUSER, PGPASSWORD, …) with a role that may create roles and databases.
set -eu

exec psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname "${PGDATABASE:-postgres}" \
  --set database="${TRIBUTARY_DATABASE:-tributary}" \
  --file "$(dirname "$0")/set-up.sql"
