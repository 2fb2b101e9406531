/** The outcome of a new row whose external id another row of the app has. */
export interface Existing<Id extends string> {
  readonly existingId: Id;
}
