import * as fc from 'fast-check';

// Shrinking takes minutes for a mutated rule, and the mutation report does not show the counterexample.
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
