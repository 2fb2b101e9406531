/** The name under which a browser keeps where the last link of an app leads that was created in it. */
const nameOf = (appId: string) => `tributary-destination-${appId}`;

/** Returns where the last link leads that was created in this browser: most links of an app lead to the same page. Empty for none. */
export const lastDestination = (appId: string): string => localStorage.getItem(nameOf(appId)) ?? '';

export function rememberDestination(appId: string, destinationUrl: string): void {
  localStorage.setItem(nameOf(appId), destinationUrl);
}
