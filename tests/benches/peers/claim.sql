begin;
@statement@;
rollback;
