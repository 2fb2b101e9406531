-- When each duty of the background work last succeeded. A duty that has stopped leaves no other trace that a metric could count.
create table duties (
  duty text primary key check (duty in ('alerts', 'conversions', 'drafts', 'rates', 'reports')),
  succeeded_at timestamptz not null
);
