import type { IncomingMessage } from 'node:http'
import {
  type Cidr,
  compileNetworks,
  findClientAddress,
  nameNetwork,
} from '../http/client-address.ts'
import { isDatabaseUnavailable } from '../platform/postgres/errors.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'

export type KeyUses = {
  /** Notes that a request with this key came. It never waits, and writes at most once a minute for all keys. */
  note(keyId: string, request: IncomingMessage): void
  /** Records what was noted since the last time. It does not reject: a lost record is logged. */
  flush(): Promise<void>
  /** Finds the address of a request's client, behind the trusted proxies. */
  findAddress(request: IncomingMessage): string
}

/** How far the recorded last use may be behind (ms): a write for each request would cost more than most reads. */
export const FLUSH_EVERY_MS = 60_000

type Use = { at: number; peer: string; forwardedFor: string | undefined }

/**
 * Remembers when and from where keys were last used, and records it in one statement: with the first use, then
 * with the first use after each minute, and when the process stops.
 * @param now wall clock (ms): the time is only shown
 */
export function createKeyUses(
  { sql, log, trusted }: { sql: Sql; log: Log; trusted: readonly Cidr[] },
  now: () => number = Date.now,
): KeyUses {
  const isTrusted = compileNetworks(trusted)
  let uses = new Map<string, Use>()
  let flushedAt = Number.NEGATIVE_INFINITY

  async function flush(): Promise<void> {
    const noted = uses
    uses = new Map()
    if (noted.size === 0) return
    const rows = [...noted].map(([id, { at, peer, forwardedFor }]) => ({
      id,
      at: new Date(at).toISOString(),
      from: nameNetwork(findClientAddress(peer, forwardedFor, isTrusted)),
    }))
    await recordUses(sql, rows).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) return
      log.info({ err: error }, 'the last use of API keys could not be recorded')
    })
  }

  return {
    note(keyId, request) {
      const at = now()
      const { peer, forwardedFor } = readHops(request)
      uses.set(keyId, { at, peer, forwardedFor })
      if (Math.abs(at - flushedAt) < FLUSH_EVERY_MS) return
      flushedAt = at
      void flush()
    },
    flush,
    findAddress(request) {
      const { peer, forwardedFor } = readHops(request)
      return findClientAddress(peer, forwardedFor, isTrusted)
    },
  }
}

function readHops({ socket, headers }: IncomingMessage) {
  const forwardedFor = headers['x-forwarded-for']
  return {
    peer: socket.remoteAddress ?? '',
    forwardedFor: typeof forwardedFor === 'string' ? forwardedFor : undefined,
  }
}

/**
 * Several processes record the same keys. A key that another statement has locked is skipped, so nothing waits for the
 * record; its next use is recorded. Its commit waits neither for the disk nor for a standby: it may be lost in a crash.
 */
async function recordUses(
  sql: Sql,
  rows: readonly { id: string; at: string; from: string }[],
): Promise<void> {
  await sql`
    with used as (
      select k.id, u.at, u.from
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as u (id uuid, at timestamptz, "from" text)
        join api_keys as k on k.id = u.id
      where k.last_used_at is null or k.last_used_at <= u.at
      order by k.id for no key update of k skip locked
    )
    update api_keys as k set last_used_at = used.at, last_used_from = used.from
    from used, (select set_config('synchronous_commit', 'off', true)) as own where k.id = used.id`
}
