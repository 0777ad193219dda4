-- Subjects of the TLS client certificates that a client's credentials need.

-- as in `C=NL, O=Acme Wallets, CN=acme`; null: none is needed
alter table client add column certificate_subject text;
alter table api_key add column certificate_subject text;
