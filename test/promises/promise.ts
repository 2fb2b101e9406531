/** A group of promises under one heading. The keys are the ids that tests name in `@promise` tags. */
export interface PromiseSection {
  readonly title: string;
  readonly promises: Readonly<Record<string, string>>;
}

/** What the service promises for one route. */
export interface EndpointPromises {
  /** Method and path, for example `GET /apps/:appId`. */
  readonly route: string;
  /** The key that the route requires, and for an account key the permission. */
  readonly caller: string;
  readonly promises: Readonly<Record<string, string>>;
}
