-- When the latest self-test of the app passed; empty if it found something to fix, before the first one, and after a change of a webhook secret. The set-up shows it.
alter table apps add column self_test_passed_at timestamptz;
