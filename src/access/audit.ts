import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import type { Context } from '../context.ts'
import type { Sql, Tx } from '../db/client.ts'
import type { AppEnv } from '../http/app-env.ts'
import { maskCardText } from '../mask.ts'

/** Who asks: a key with its request, or, without an id, a person at the command line. */
export type Asker = { id: string | null; name: string; requestId: string | null }

/** What was asked for: `operation` is a method with its route, or a command. */
export type Write = { operation: string; merchantCode: string | null; objectId: string | null }

/**
 * Records who asked for a write, in the write's own commit.
 * @param outcome `done`, or the code of the refusal
 */
export async function recordWrite(
  tx: Tx,
  { id, name, requestId }: Asker,
  { operation, merchantCode, objectId }: Write,
  outcome = 'done',
): Promise<void> {
  await tx`
    insert into audit_entries
      (key_id, actor, operation, merchant_code, object_id, request_id, outcome)
    values (${id}, ${name}, ${operation}, ${merchantCode}, ${objectId}, ${requestId}, ${outcome})`
}

/**
 * Records every write that was refused, after its refusal: nothing of its own was committed. A request
 * beyond the key's rate is not recorded, and one that fails on our side is in the log.
 */
export function auditRefusals(ctx: Context) {
  return createMiddleware<AppEnv>(async (c, next) => {
    await next()
    const { method, path } = c.req
    const { status } = c.res
    if (method === 'GET' || method === 'HEAD' || status < 400 || status > 499) return
    // A preview asks for nothing to be written.
    if (c.req.query('dryRun') === 'true') return
    const route = matchedRoutes(c).at(-1)?.path ?? '*'
    if (route.includes('*')) return
    const write = {
      operation: `${method} ${route.replaceAll(/:(\w+)/g, '{$1}')}`,
      merchantCode: null,
      objectId: readId(route, path),
    }
    const outcome = c.get('refusal') ?? String(status)
    await recordWrite(ctx.sql, c.get('access'), write, outcome).catch((error: unknown) => {
      const requestId = c.get('requestId')
      ctx.log.error({ err: error, requestId, ...write, outcome }, 'a refusal was not recorded')
    })
  })
}

/** The id in a path: the first part that its route leaves open. As it was sent, so cut and masked. */
function readId(route: string, path: string): string | null {
  const at = route.split('/').findIndex((part) => part.startsWith(':'))
  const id = at === -1 ? undefined : path.split('/')[at]
  if (id === undefined) return null
  const text = decodeURIComponent(id)
    .replaceAll(/\p{Cc}/gu, '?')
    .toWellFormed()
  return maskCardText(text).slice(0, 128)
}

export type AuditEntry = {
  id: number
  at: string
  keyId: string | null
  actor: string
  operation: string
  merchantCode: string | null
  objectId: string | null
  requestId: string | null
  outcome: string
}

export type AuditFilter = { objectId?: string | undefined; keyId?: string | undefined }

/** The newest entries, newest first; of one object with its refunds, or of one key, if it is named. */
export async function listAuditEntries(
  sql: Sql,
  { objectId, keyId }: AuditFilter,
  limit: number,
): Promise<AuditEntry[]> {
  return await sql<AuditEntry[]>`
    select id, at::text, key_id as "keyId", actor, operation, merchant_code as "merchantCode",
      object_id as "objectId", request_id as "requestId", outcome
    from audit_entries
    where ${
      objectId === undefined
        ? sql`true`
        : sql`object_id in (select ${objectId}::text union all
            select refund_id::text from refunds
            where payment_id = ${objectId} or transaction_id = ${objectId})`
    }
      and ${keyId === undefined ? sql`true` : sql`key_id = ${keyId}`}
    order by id desc limit ${limit}`
}
