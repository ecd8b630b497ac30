import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPort } from '../../support/ports.ts'
import {
  ask,
  findDebianPrograms,
  findPrograms,
  type PostgresServer,
  prepareServer,
} from '../../support/postgres-server.ts'
import { startReplication } from '../replication.ts'

const run = promisify(execFile)

/** A Postgres with full durability that can be killed, paused, restarted, set back and replaced by its standby. */
export type ChaosDatabase = {
  name: string
  /** The port of every server of it: of the first primary, and of the standby if there is one. */
  ports: readonly number[]
  /** The primary of now, without a proxy. */
  url(): string
  start(): Promise<void>
  /** Sends SIGKILL to all its processes at once; resolves when they have ended. */
  kill(): Promise<void>
  /** Pauses all its processes, and resumes them. */
  pause(): void
  resume(): void
  /** Copies the files of the killed primary. */
  copy(): Promise<void>
  /** Replaces the files of the killed primary by the copy: every commit since is lost. */
  setBack(): Promise<void>
  /**
   * Kills the primary for good and promotes the standby, which was synchronous: no commit is lost. Undefined where
   * there is no standby, or no longer one.
   */
  failOver: (() => Promise<void>) | undefined
  stop(): Promise<void>
}

type Servers = {
  name: string
  ports: readonly number[]
  primary(): PostgresServer
  promote: (() => Promise<void>) | undefined
  stop(): Promise<void>
}

/** Creates a database in the folder and starts it, with Debian's programs and a standby if installed, else the embedded ones. */
export async function startChaosDatabase(folder: string): Promise<ChaosDatabase> {
  const { name, ports, primary, promote, stop } = await startServers(folder)
  const copied = join(folder, 'copy')
  let hasStandby = promote !== undefined
  async function failOver(): Promise<void> {
    hasStandby = false
    await primary().kill()
    await promote?.()
  }
  const version = await ask<{ version: string }>(
    primary().url,
    `select current_setting('server_version') as version`,
  )
  return {
    name: `${name} ${version[0]?.version}`,
    ports,
    url: () => primary().url,
    start: () => primary().start(),
    kill: () => primary().kill(),
    pause: () => primary().signal('SIGSTOP'),
    resume: () => primary().signal('SIGCONT'),
    copy: () => copyFiles(primary().data, copied),
    async setBack() {
      await rm(primary().data, { recursive: true })
      await copyFiles(copied, primary().data)
    },
    get failOver() {
      return hasStandby ? failOver : undefined
    },
    stop,
  }
}

async function startServers(folder: string): Promise<Servers> {
  const debian = findDebianPrograms()
  if (debian !== undefined) {
    const ports = [await findPort(), await findPort()] as const
    const { primary, promote, stop } = await startReplication(debian, folder, ports, 'synchronous')
    return { name: "Debian's Postgres", ports, primary, promote, stop }
  }
  const server = prepareServer(findPrograms(folder), folder, await findPort())
  await server.create()
  await server.start()
  const { port, stop } = server
  const name = 'embedded Postgres'
  return { name, ports: [port], primary: () => server, promote: undefined, stop }
}

/** Copies a cluster's files with their owners, without the lock file of the server that was killed. */
async function copyFiles(from: string, to: string): Promise<void> {
  await run('cp', ['-a', from, to])
  await rm(join(to, 'postmaster.pid'), { force: true })
}
