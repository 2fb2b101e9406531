#!/bin/sh
# Creates or updates the tables of the Temporal server in its two databases. Safe to run again, and needed before a new
# version of the server starts. The tool reads SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD and SQL_TLS… itself.
set -eu

for database in temporal temporal_visibility; do
  case "$database" in
    temporal) schema=postgresql/v12/temporal ;;
    *) schema=postgresql/v12/visibility ;;
  esac
  temporal-sql-tool --plugin postgres12_pgx --database "$database" setup-schema --version 0.0
  temporal-sql-tool --plugin postgres12_pgx --database "$database" update-schema --schema-name "$schema"
done
