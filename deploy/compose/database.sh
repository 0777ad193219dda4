#!/bin/bash
# Run once by the image of Postgres, in the empty cluster: a database, and a role for it that is no superuser, for
# whom row-level security holds.
set -eu
psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --set password="$(cat /run/secrets/rampart-password)" <<'SQL'
create role rampart login createrole password :'password';
create database rampart owner rampart;
SQL
