export interface MarkingActivityDeps {
  /** Returns whether the Temporal namespace has the search attribute that workflows set. */
  readonly canMark: () => Promise<boolean>;
}

export interface MarkingActivities {
  canMark(): Promise<boolean>;
}

/** The activity that tells workflows whether they may set their search attribute. */
export function createMarkingActivities({ canMark }: MarkingActivityDeps): MarkingActivities {
  return { canMark };
}
