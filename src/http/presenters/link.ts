import type { Link, LinkListRow } from '../../db/links.ts';

/** A link, as it leaves. */
export function presentLink(link: Link) {
  const { id, slug, destinationUrl, campaign, active, affiliateId, createdAt } = link;
  return { id, slug, destinationUrl, campaign, active, affiliateId, createdAt };
}

/** A link in a list. */
export function presentLinkRow(row: LinkListRow) {
  const { affiliateName, clicks } = row;
  return { ...presentLink(row), affiliateName, clicks };
}
