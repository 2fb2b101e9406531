-- When the latest self-test of the app passed; empty if it found something to fix, or before the first one. The set-up shows it.
alter table apps add column self_test_passed_at timestamptz;
