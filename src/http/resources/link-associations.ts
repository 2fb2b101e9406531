import * as z from 'zod';
import type { AssociationFiles } from '../../commands/shared-associations.ts';
import { findAssociations } from '../../db/link-associations.ts';
import { androidAssociation, appleAssociation } from '../../domain/link-associations.ts';
import { subdomainOfHost } from '../../domain/slugs.ts';
import type { HttpContext } from '../context.ts';
import type { HttpDeps } from '../deps.ts';
import { foundOrThrow } from '../errors.ts';
import { textField, textsLike } from '../fields.ts';
import { anyone } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/** Returns the files of the requested host: those of one app on its link subdomain, and of all apps on any other host. */
async function filesOf(ctx: HttpContext, deps: HttpDeps): Promise<AssociationFiles> {
  const subdomain = subdomainOfHost(ctx.hostname, new URL(deps.publicUrl).hostname);
  const own = subdomain === null ? undefined : await findAssociations(deps.sql, subdomain);
  if (own === undefined) return await deps.intake.sharedAssociations();
  const { iosAppIds, androidApps } = own;
  const links = [{ iosAppIds, androidApps, paths: ['/l/*'] }];
  return { apple: appleAssociation(links), android: androidAssociation(links) };
}

const pattern = z.record(z.string(), z.unknown()).describe('A pattern for the path and the query of a link.');

const appleFile = z
  .object({
    applinks: z
      .object({
        details: z
          .array(
            z.object({
              appIDs: textsLike('ABCDE12345.com.example.app').describe('App ids of Apple.'),
              components: z.array(pattern).describe('The links that they open.'),
            }),
          )
          .describe('One entry for each app of the service.'),
      })
      .describe('Universal Links.'),
  })
  .meta({ id: 'AppleAppSiteAssociation', description: 'The iOS apps that open links of this host.' });

const androidFile = z
  .array(
    z.object({
      relation: textsLike('delegate_permission/common.handle_all_urls').describe(
        'What the app may do: open links.',
      ),
      target: z
        .object({
          namespace: z.literal('android_app').describe('An Android app.'),
          package_name: textField('com.example.app', 'The application id.'),
          sha256_cert_fingerprints: textsLike(Array.from({ length: 32 }, () => 'A1').join(':')).describe(
            'The certificates that it is signed with.',
          ),
        })
        .describe('The app.'),
      relation_extensions: z
        .record(
          z.string(),
          z.object({
            dynamic_app_link_components: z
              .array(pattern)
              .describe('The links that it opens, the first match decides.'),
          }),
        )
        .describe('What Android 15 and newer read.'),
    }),
  )
  .meta({ id: 'AssetLinks', description: 'The Android apps that open links of this host.' });

const DESCRIPTION =
  "On an app's link subdomain, the mobile apps that its settings name; on any other host, those of all apps, each for its own links. " +
  'Changes appear within a minute; devices and app stores keep a copy for longer.';

function association(
  name: 'apple' | 'android',
  path: string,
  texts: { readonly operationId: string; readonly summary: string },
  schema: z.ZodType,
) {
  return route({
    method: 'GET',
    path,
    caller: anyone(),
    ...texts,
    description: DESCRIPTION,
    errors: ['not_found', 'unavailable'],
    response: { status: 200, contentType: 'application/json', schema },
    handler: async ({ ctx, deps }) => ({
      // Apple and Google accept no redirect and no other content type. A cache keeps one file for each host.
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'public, max-age=60', Vary: 'Host' },
      body: foundOrThrow((await filesOf(ctx, deps))[name] ?? undefined),
    }),
  });
}

export const linkAssociationRoutes = [
  association(
    'apple',
    '/.well-known/apple-app-site-association',
    { operationId: 'getAppleAppSiteAssociation', summary: 'Names the iOS apps that open links directly.' },
    appleFile,
  ),
  association(
    'android',
    '/.well-known/assetlinks.json',
    { operationId: 'getAssetLinks', summary: 'Names the Android apps that open links directly.' },
    androidFile,
  ),
];
