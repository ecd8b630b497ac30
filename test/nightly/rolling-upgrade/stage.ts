import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundle, linkPackage } from '../../support/bundle.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { findPort } from '../../support/ports.ts'
import { writeAccounts } from '../chaos/accounts.ts'
import { controlGateway, type GatewayControl } from '../chaos/gateway.ts'
import { type Member, prepareMember } from '../chaos/processes.ts'
import { SETTINGS } from '../chaos/services.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { buildRelease, findNewestRelease } from './newest-release.ts'

/** The newest release, where there is one, and the version of the working tree. */
export type Version = 'released' | 'present'

/** One database, one gateway, and processes of two versions behind a balancer. */
export type Stage = {
  /** For copies of migrations, and the logs of the processes. */
  folder: string
  /** Whether there is a release to upgrade from. */
  hasRelease: boolean
  database: OwnDatabase
  gateway: GatewayControl
  balancer: Balancer
  /** Starts processes that serve and work; resolves when they are ready. */
  start(version: Version, count: number): Promise<Member[]>
  /** The lines that processes logged as errors, with what they printed without a log. */
  listErrors(): string[]
  /** Stops everything; keeps the folder on request. */
  stop(keep: boolean): Promise<void>
}

/** Nothing fails here: a call that takes long is slow because the machine is, and asking again seldom is enough. */
const PATIENT = {
  GATEWAY_TIMEOUT_MS: '5000',
  SYNC_REPOLL_MS: '1000',
  REFUND_BACKOFF_MS: '500',
  DATABASE_POOL: '6',
}
/** A line of the log below errors. */
const USUAL = /^\{"level":[1-4]0,/

/** Starts the gateway and the balancer on an empty database. */
export async function startStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-upgrade-'))
  chmodSync(folder, 0o755)
  const stops: (() => Promise<unknown>)[] = []
  async function stop(keep: boolean): Promise<void> {
    for (const end of stops.splice(0).reverse()) await end()
    if (keep) console.info(`the logs of the processes are in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
  try {
    linkPackage(folder)
    const tag = findNewestRelease()
    const present = bundle('src/main.ts', folder, 'service')
    const programs = {
      released: tag ? buildRelease(tag, join(folder, 'released')) : present,
      present,
      sandbox: bundle('src/sandbox/main.ts', folder, 'sandbox'),
    }
    const accounts = { MERCHANTS_FILE: join(folder, 'merchants.json') }
    writeFileSync(accounts.MERCHANTS_FILE, writeAccounts())
    const database = await createTestDatabase({ empty: true })
    stops.push(database.drop)
    const balancer = await startBalancer()
    stops.push(balancer.stop)
    const logOf = (name: string) => join(folder, `${name}.log`)
    async function run(name: string, file: string, env: Record<string, string>): Promise<Member> {
      const port = await findPort()
      const settings = { ...accounts, ...env }
      const member = prepareMember({ name, file, port, logFile: logOf(name), env: settings })
      stops.push(member.stop)
      await member.start()
      return member
    }
    const toBalancer = { SANDBOX_IPN_URL: `${balancer.url}/ipn` }
    const sandbox = await run('sandbox', programs.sandbox, toBalancer)
    const env = {
      ...SETTINGS,
      ...PATIENT,
      API_KEY: 'upgrade-key-with-every-scope-0123456789',
      DATABASE_URL: database.url,
      GATEWAY_BASE_URL: sandbox.url,
    }
    const started: string[] = []
    return {
      folder,
      hasRelease: tag !== undefined,
      database,
      gateway: controlGateway(sandbox.url),
      balancer,
      async start(version, count) {
        const names = Array.from({ length: count }, () => {
          const name = `${version}-${started.length + 1}`
          started.push(name)
          return name
        })
        return await Promise.all(names.map((name) => run(name, programs[version], env)))
      },
      listErrors: () => started.flatMap((name) => readErrors(logOf(name), name)),
      stop,
    }
  } catch (error) {
    await stop(true)
    throw error
  }
}

function readErrors(file: string, name: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => (line === '' || USUAL.test(line) ? [] : `${name}: ${line}`))
}
