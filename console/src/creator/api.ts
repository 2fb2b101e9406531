import { consoleUrl, createApi } from '../api/client.ts';

const [seenPath, appId = '', affiliateId = ''] =
  /^creator\/as\/(app_\w+)\/(aff_\w+)(?=\/|$)/.exec(location.pathname.slice(consoleUrl.pathname.length)) ??
  [];

/**
 * The creator whose page a founder sees ("See as creator"), from the address `/console/creator/as/APP/CREATOR/`. Null on the creator's
 * own page. Only the address decides, so a browser can show both, each with its own session.
 */
export const seenAs =
  seenPath === undefined
    ? null
    : {
        /** The path of the page below `/console/`. */
        path: seenPath,
        /** The path of the founder's page about the creator. */
        founderPath: `apps/${appId}/creators/${affiliateId}`,
      };

/** The client of the creator's page. For a founder, each path is that of the founder's route with the same response. */
export const api = createApi(seenAs === null ? '' : `/apps/${appId}/affiliates/${affiliateId}`);
