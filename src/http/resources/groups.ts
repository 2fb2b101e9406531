import * as z from 'zod';
import { createGroup, findGroup, listGroups, listMembers, renameGroup } from '../../db/groups.ts';
import type { AffiliateGroup } from '../../db/groups.ts';
import { foundOrThrow } from '../errors.ts';
import { epochMs, idOf, label, nameOfAffiliate, orNull, textField } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  decodeCursor,
  MAY_BE_SHORT,
  nameKey,
  pageQuery,
  pageSchema,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const group = z
  .object({
    id: idOf('group'),
    name: textField('VIPs', 'The name.'),
    createdAt: epochMs('When it was created.'),
  })
  .meta({ id: 'AffiliateGroup', description: 'Affiliates who earn by the same policy.' });

const named = z
  .strictObject({ name: label.meta({ description: 'The name.', examples: ['VIPs'] }) })
  .meta({ id: 'GroupName', description: 'The name of a group.' });

const member = z
  .object({
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    memberFrom: epochMs('Since when. In the future for one who joins later.'),
    memberUntil: orNull(epochMs('Until when.'), 'Null if no other group follows.'),
  })
  .meta({ id: 'GroupMember', description: 'An affiliate in a group.' });

function presentGroup({ id, name, createdAt }: AffiliateGroup) {
  return { id, name, createdAt };
}

export const groupRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/groups',
    caller: accountApp('read'),
    operationId: 'listGroups',
    summary: 'Lists groups of affiliates, oldest first.',
    description: CSV_LIST,
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(group), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'groups', appId: app.id, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      return presentPage(key, await listGroups(deps.sql, app.id, after, query.limit), presentGroup);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/groups',
    caller: accountApp('write'),
    operationId: 'createGroup',
    summary: 'Creates a group of affiliates.',
    body: named,
    response: { status: 201, schema: group },
    handler: async ({ deps, app, idGenerator, body }) =>
      presentGroup(
        foundOrThrow(
          await createGroup(deps.sql, { id: idGenerator.id('group'), appId: app.id, name: body.name }),
        ),
      ),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/groups/:groupId',
    caller: accountApp('read'),
    operationId: 'getGroup',
    summary: 'Retrieves a group of affiliates.',
    ids: { groupId: 'group' },
    response: { status: 200, schema: group },
    handler: async ({ deps, app, ids }) =>
      presentGroup(foundOrThrow(await findGroup(deps.sql, app.id, ids.groupId))),
  }),

  route({
    method: 'PATCH',
    path: '/apps/:appId/groups/:groupId',
    caller: accountApp('write'),
    operationId: 'renameGroup',
    summary: 'Renames a group of affiliates.',
    ids: { groupId: 'group' },
    body: named,
    response: { status: 200, schema: group },
    handler: async ({ deps, app, ids, body }) =>
      presentGroup(foundOrThrow(await renameGroup(deps.sql, app.id, ids.groupId, body.name))),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/groups/:groupId/members',
    caller: accountApp('read'),
    operationId: 'listGroupMembers',
    summary: 'Lists the affiliates of a group.',
    description: `Those who are in it now, or join it later. In the order of their ids. ${MAY_BE_SHORT} ${CSV_LIST}`,
    ids: { groupId: 'group' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(member), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const { groupId } = ids;
      foundOrThrow(await findGroup(deps.sql, app.id, groupId));
      const key = { list: 'group members', appId: app.id, filters: { groupId } };
      const after = decodeCursor(key, nameKey, query.cursor);
      const page = await listMembers(deps.sql, app.id, groupId, after, query.limit);
      return presentPage(key, page, ({ affiliateId, affiliateName, memberFrom, memberUntil }) => ({
        affiliateId,
        affiliateName,
        memberFrom,
        memberUntil,
      }));
    },
  }),
];
