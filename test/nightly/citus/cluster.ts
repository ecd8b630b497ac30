import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { findPort } from '../../support/ports.ts'
import {
  ask,
  findDebianPrograms,
  type PostgresServer,
  prepareServer,
} from '../../support/postgres-server.ts'

/** Returns the folder with Postgres's programs if Citus is installed for them. */
export function findCitus(): string | undefined {
  const share = spawnSync('pg_config', ['--sharedir'], { encoding: 'utf8' }).stdout?.trim() ?? ''
  return existsSync(join(share, 'extension', 'citus.control')) ? findDebianPrograms() : undefined
}

/** A coordinator, and two servers that take cells. */
export type Cluster = {
  coordinator: PostgresServer
  workers: readonly [PostgresServer, PostgresServer]
  stop(): Promise<void>
}

const SETTINGS = `
shared_preload_libraries = 'citus'
fsync = off
wal_level = logical
max_prepared_transactions = 200
max_worker_processes = 20
citus.enable_statistics_collection = off
`

export const nameNode = ({ port }: PostgresServer) => `127.0.0.1:${port}`

export async function startCluster(bin: string, folder: string): Promise<Cluster> {
  const started: PostgresServer[] = []
  const stop = async () => {
    for (const server of started.toReversed()) await server.stop()
  }
  async function start(): Promise<PostgresServer> {
    const server = prepareServer(bin, folder, await findPort())
    await server.create()
    appendFileSync(join(server.data, 'postgresql.conf'), SETTINGS)
    started.push(server)
    await server.start()
    await ask(server.url, 'create extension citus')
    return server
  }
  try {
    const coordinator = await start()
    const workers = [await start(), await start()] as const
    await ask(
      coordinator.url,
      `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
    )
    for (const { port } of workers)
      await ask(coordinator.url, `select citus_add_node('127.0.0.1', ${port})`)
    return { coordinator, workers, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
