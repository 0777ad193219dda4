#!/bin/sh
# Makes the secrets of compose.yaml that are missing, each in a file of its own: deploy/compose/secrets.sh [FOLDER]
# The certificate is for localhost and for the balancer, as connectors know it, signed by itself, and made anew in the last 30
# days of its year: edges read it at once, connectors when they are started again.
set -eu
folder=${1:-$(dirname "$0")/secrets}
umask 077
mkdir -p "$folder"
cd "$folder"

random() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }
# In a URL and in SQL it stands for itself.
word() { head -c 24 /dev/urandom | od -An -vtx1 | tr -d ' \n'; }

[ -s postgres-password ] || word >postgres-password
[ -s rampart-password ] || word >rampart-password
[ -s database-url ] || echo "postgres://rampart:$(cat rampart-password)@postgres/rampart" >database-url
[ -s valkey-password ] || word >valkey-password
[ -s valkey-url ] || echo "redis://:$(cat valkey-password)@valkey:6379" >valkey-url
[ -s master-key ] || random >master-key
[ -s admin-token ] || word >admin-token
has_certificate() {
    openssl x509 -noout -checkend 2592000 -in certificate >/dev/null 2>&1 &&
        openssl x509 -noout -checkhost balancer -in certificate | grep -q 'does match'
}
has_certificate || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
    -addext basicConstraints=critical,CA:FALSE \
    -addext subjectAltName=DNS:localhost,DNS:balancer,IP:127.0.0.1 -keyout certificate-key -out certificate 2>/dev/null
# Read in the containers by users of their own; on this machine the folder keeps others out.
chmod 644 ./*
chmod 700 .
