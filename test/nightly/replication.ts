import { rmSync } from 'node:fs'
import { ask, type PostgresServer, prepareServer } from '../support/postgres-server.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Whether a commit waits until the standby has it on disk. */
export type ReplicationMode = 'synchronous' | 'asynchronous'

/** A primary and its standby by streaming replication. Their roles change with a promotion. */
export type Replication = {
  /** Lists both servers, in an order that stays. */
  url: string
  primary(): PostgresServer
  standby(): PostgresServer
  /** Stops what sends WAL to the standby, and continues it: what commits in between is on the primary alone. */
  holdWal(): void
  releaseWal(): void
  /**
   * Promotes the standby, which waits for no standby of its own then. Resolves when it accepts writes. Stop or
   * kill the primary first.
   */
  promote(): Promise<void>
  /** Replaces what the former primary holds by a copy of the present one, and starts it as its standby. */
  rebuildStandby(): Promise<void>
  stop(): Promise<void>
}

const WAL_SENDER = /walsender/

/**
 * Creates a primary and a standby in the folder and starts them.
 * @param bin the folder with Postgres's programs, from `findDebianPrograms`
 * @param ports of the primary and of the standby
 */
export async function startReplication(
  bin: string,
  folder: string,
  ports: readonly [number, number],
  mode: ReplicationMode,
): Promise<Replication> {
  let primary = prepareServer(bin, folder, ports[0])
  let standby = prepareServer(bin, folder, ports[1])
  await primary.create()
  await primary.start()
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join()

  async function follow(): Promise<void> {
    const copied = ['-d', primary.url, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']
    await standby.run('pg_basebackup', copied)
    await standby.start()
    // Only now: the standby must not copy the setting, because a promoted one has none to wait for.
    if (mode === 'synchronous') {
      await ask(primary.url, "alter system set synchronous_standby_names = '*'")
      await ask(primary.url, 'select pg_reload_conf()')
    }
    await waitUntil(async () => (await readSyncState(primary.url)) === EXPECTED[mode], {
      what: `the standby follows, ${mode}`,
      everyMs: 50,
    })
  }
  await follow()
  return {
    url: `postgres://postgres@${hosts}/postgres?target_session_attrs=primary`,
    primary: () => primary,
    standby: () => standby,
    holdWal: () => primary.signal('SIGSTOP', WAL_SENDER),
    releaseWal: () => primary.signal('SIGCONT', WAL_SENDER),
    async promote() {
      await standby.run('pg_ctl', ['promote', '-w'])
      const former = primary
      primary = standby
      standby = former
    },
    async rebuildStandby() {
      await standby.kill()
      rmSync(standby.data, { recursive: true, force: true })
      standby = prepareServer(bin, folder, standby.port)
      await follow()
    },
    async stop() {
      await Promise.all([primary.stop(), standby.stop()])
    },
  }
}

const EXPECTED = { synchronous: 'sync', asynchronous: 'async' }

async function readSyncState(url: string): Promise<string | undefined> {
  const [row] = await ask<{ state: string }>(
    url,
    `select sync_state as state from pg_stat_replication where state = 'streaming'`,
  )
  return row?.state
}
