import type { Schemas } from '../api/client.ts';

export type Member = Schemas['Member'];
export type Role = Member['role'];

/** What each role may do, in words. */
export const ROLES: Readonly<Record<Role, { readonly name: string; readonly may: string }>> = {
  owner: { name: 'Owner', may: 'Everything, and manages the team' },
  admin: {
    name: 'Admin',
    may: 'Changes settings, creators and links, connects providers, creates apps and keys. Does not pay',
  },
  finance: {
    name: 'Finance',
    may: 'Pays creators, sets payees, adds bonuses and deductions. Changes nothing else',
  },
  analyst: { name: 'Analyst', may: 'Sees everything, and changes nothing' },
};

export const MEMBERS_KEY = ['members'];
