import { listMerchants } from '../../src/access/authenticate.ts'
import type { Access } from '../../src/access/types.ts'
import { KEY, type Rig } from './service.ts'

/** The access of a request with a key, for calls of domain functions. */
export async function findAccess({ service: { ctx } }: Rig, key = KEY): Promise<Access> {
  const found = await ctx.keys.find(key, 'current')
  if (!found) throw new Error('no such key')
  return { ...found, merchants: listMerchants(found, ctx.merchants), requestId: 'test' }
}
