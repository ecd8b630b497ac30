import { listAccounts } from '../../src/access/authenticate.ts'
import { findSession } from '../../src/access/sessions.ts'
import type { Access } from '../../src/access/types.ts'
import { KEY, type Rig } from './service.ts'

/** No caps, no rate and no networks of a key. */
export const UNLIMITED = {
  refundMax: null,
  refundDailyMax: null,
  refundMaxByCurrency: null,
  refundDailyMaxByCurrency: null,
  ratePerMinute: null,
  networks: null,
}

/** The access of a request with a key, for calls of domain functions. */
export async function findAccess({ service: { ctx } }: Rig, key = KEY): Promise<Access> {
  const found = await ctx.access.keys.find(key, 'current')
  if (!found) throw new Error('no such key')
  return {
    ...found,
    ...listAccounts(found, ctx.access.merchants),
    requestId: 'test',
    required: new Set(),
  }
}

/** The access of a person's request in the console, by the token of a session. */
export async function findPersonAccess({ service: { ctx } }: Rig, token: string): Promise<Access> {
  const session = await findSession(ctx.db.sql, token)
  if (!session) throw new Error('there is no such session')
  const { id: sessionId, person } = session
  const more = { requestId: 'test', required: new Set<never>(), isPerson: true } as const
  return { ...person, ...listAccounts(person, ctx.access.merchants), ...more, sessionId }
}
