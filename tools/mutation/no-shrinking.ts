import * as fc from 'fast-check';

// To look for the smallest counterexample takes minutes where the rule is broken on purpose, and nobody reads it.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
