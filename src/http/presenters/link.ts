import type { App } from '../../db/apps.ts';
import type { Link, LinkListRow } from '../../db/links.ts';
import type { HttpDeps } from '../deps.ts';

/** Shows links as they leave, each with the address that a creator shares. All of them are of the one app. */
export function linkPresenter({ publicUrl }: Pick<HttpDeps, 'publicUrl'>, { linkSubdomain }: App) {
  const one = (link: Link) => {
    const { id, slug, destinationUrl, campaign, active, affiliateId, createdAt } = link;
    const url = `${publicUrl}/l/${linkSubdomain}/${slug}`;
    return { id, slug, url, destinationUrl, campaign, active, affiliateId, createdAt };
  };
  /** A link in a list. */
  const row = (link: LinkListRow) => {
    const { affiliateName, clicks } = link;
    return { ...one(link), affiliateName, clicks };
  };
  return { one, row };
}

export type LinkPresenter = ReturnType<typeof linkPresenter>;
