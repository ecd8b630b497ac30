import type { Sql } from '../../../src/platform/postgres/types.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Resolves once every connection of a pool has started its session. */
export async function startEveryConnection(sql: Sql): Promise<void> {
  const sessions = new Set<number>()
  const ask = async () => {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.02)`
    if (row) sessions.add(row.pid)
  }
  const isEveryOneOpen = async () => {
    await Promise.allSettled(Array.from({ length: 2 * sql.options.max }, ask))
    return sessions.size === sql.options.max
  }
  await waitUntil(isEveryOneOpen, { what: 'every connection of the pool serves' })
}
