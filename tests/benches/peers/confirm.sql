\set number random(1, 9007199254740991)
@statement@;
