import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPort } from '../../support/ports.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { type Drill, type Stops, startDrill } from '../start-drill.ts'
import { storeKeys, writeAccounts } from './accounts.ts'
import { type ChaosDatabase, startChaosDatabase } from './database.ts'
import { controlGateway, type GatewayControl } from './gateway.ts'
import type { Line } from './moves.ts'
import { prepareMember } from './processes.ts'
import { buildPrograms, type Services, startServices } from './services.ts'

/** All parts that can fail, each in a process of its own, with a proxy on every connection between them. */
type Parts = Omit<Services, 'stop'> & {
  database: ChaosDatabase
  gateway: GatewayControl
  lines: Record<Line, ProxiedLine>
  /** The address at which order systems and the gateway reach the service. */
  serviceUrl: string
}
export type Stage = Drill<Parts>

/** One or several proxies that are disturbed together. */
export type ProxiedLine = Pick<TcpProxy, 'cut' | 'stall' | 'refuse' | 'heal'>

/** Starts database, gateway, proxies and the service. */
export const startStage = (seed: number): Promise<Stage> =>
  startDrill('chaos', (folder, stops) => startParts(folder, seed, stops))

async function startParts(folder: string, seed: number, stops: Stops): Promise<Parts> {
  const programs = buildPrograms(folder)
  const database = await startChaosDatabase(folder)
  stops.push(database.stop)
  async function openLine(...ports: readonly number[]): Promise<TcpProxy> {
    const line = await startTcpProxy()
    stops.push(line.stop)
    line.pointTo(...ports)
    return line
  }
  // One for each server: the service finds the primary by itself.
  const servers: TcpProxy[] = []
  for (const port of database.ports) servers.push(await openLine(port))
  const intake = await openLine()
  const serviceUrl = `http://127.0.0.1:${intake.port}`
  const accounts = { MERCHANTS_FILE: join(folder, 'merchants.json') }
  writeFileSync(accounts.MERCHANTS_FILE, writeAccounts())
  const sandbox = prepareMember({
    name: 'sandbox',
    file: programs.sandbox,
    port: await findPort(),
    logFile: join(folder, 'sandbox.log'),
    env: { ...accounts, SANDBOX_IPN_URL: `${serviceUrl}/ipn` },
  })
  stops.push(sandbox.stop)
  await sandbox.start()
  const gateway = controlGateway(sandbox.url)
  await gateway.send('POST', '/seed', { seed: seed >>> 0, transactions: 0 })
  const gatewayLine = await openLine(sandbox.port)
  const env = {
    ...accounts,
    API_KEY: 'chaos-key-with-every-scope-0123456789',
    DATABASE_URL: describeServers(servers),
    GATEWAY_BASE_URL: `http://127.0.0.1:${gatewayLine.port}`,
  }
  const services = await startServices(folder, programs, env, intake)
  stops.push(services.stop)
  await storeKeys(database.url())
  const { members, serving, working, change } = services
  return {
    database,
    gateway,
    lines: { database: joinLines(servers), gateway: gatewayLine, intake },
    serviceUrl,
    members,
    serving,
    working,
    change,
  }
}

function describeServers(servers: readonly TcpProxy[]): string {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join()
  const choice = servers.length > 1 ? '?target_session_attrs=primary' : ''
  return `postgres://postgres@${hosts}/postgres${choice}`
}

function joinLines(lines: readonly TcpProxy[]): ProxiedLine {
  return {
    cut() {
      for (const line of lines) line.cut()
    },
    stall(what) {
      for (const line of lines) line.stall(what)
    },
    refuse() {
      for (const line of lines) line.refuse()
    },
    async heal() {
      for (const line of lines) await line.heal()
    },
  }
}
