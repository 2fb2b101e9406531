import { usePermission } from '../session.ts';
import { useOpenAlerts } from './queries.ts';
import { countText } from './words.ts';

/** The number of open alerts beside the name of their page. Nothing without any. */
export function OpenCount({ appId }: { readonly appId: string }) {
  const { data } = useOpenAlerts(appId, usePermission('read'));
  const count = data?.items.length ?? 0;
  if (data === undefined || count === 0) return null;
  const text = countText({ count, hasMore: data.nextCursor !== null });
  return (
    <span className="tag toned" data-tone="bad">
      {text}
      <span className="spoken"> open</span>
    </span>
  );
}
