-- Logos may be drawings.

alter table client
  -- true if client_logo has an SVG, written anew by an edge like its other ones; else a PNG
  add column logo_is_svg boolean not null default false;
