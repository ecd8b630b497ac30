import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle, linkPackage } from '../../support/bundle.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { findPort } from '../../support/ports.ts'
import { writeAccounts } from '../chaos/accounts.ts'
import { controlGateway, type GatewayControl } from '../chaos/gateway.ts'
import { type Member, prepareMember } from '../chaos/processes.ts'
import { SETTINGS } from '../chaos/services.ts'
import { type Drill, type Stops, startDrill } from '../start-drill.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { buildRelease, findNewestRelease } from './newest-release.ts'

/** The newest release, where there is one, and the version of the working tree. */
export type Version = 'released' | 'present'

/** One database, one gateway, and processes of two versions behind a balancer. */
type Parts = {
  /** Whether there is a release to upgrade from. */
  hasRelease: boolean
  database: OwnDatabase
  gateway: GatewayControl
  balancer: Balancer
  /** Starts processes that serve and work; resolves when they are ready. */
  start(version: Version, count: number): Promise<Member[]>
  /** The lines that processes logged as errors, with what they printed without a log. */
  listErrors(): string[]
}
export type Stage = Drill<Parts>

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
export const startStage = (): Promise<Stage> => startDrill('upgrade', startParts)

async function startParts(folder: string, stops: Stops): Promise<Parts> {
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
  }
}

function readErrors(file: string, name: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => (line === '' || USUAL.test(line) ? [] : `${name}: ${line}`))
}
