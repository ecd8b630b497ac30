import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Config } from '../config/config.ts'
import { doHostsOverlap } from '../config/conflicts.ts'

/** A setting names an address that cannot be listened on. */
export class PortError extends Error {}

/** A port that the service will listen on, with the settings it comes from. */
type Port = { setting: string; hostSetting: string; host: string; port: number }

/**
 * Checks that every port of the settings can be listened on, before a database is made or migrated for a start that
 * would fail. All of them are bound at once, and released.
 * @throws PortError that names the setting
 */
export async function requireFreePorts(config: Config): Promise<void> {
  const servers: Server[] = []
  const ports = listPorts(config)
  try {
    for (const one of ports) {
      const same = ports.slice(0, servers.length).find((other) => isSame(one, other))
      if (same) {
        throw new PortError(
          `${one.setting} and ${same.setting} are both ${one.port}; set ${one.setting} to another port`,
        )
      }
      servers.push(await bind(one))
    }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

/** Returns whether both cannot be listened on at once; 0 is any free port. */
function isSame(one: Port, other: Port): boolean {
  if (one.port === 0 || one.port !== other.port) return false
  return doHostsOverlap(one.host, other.host)
}

function listPorts(config: Config): Port[] {
  const { HOST, PORT, METRICS_HOST, METRICS_PORT, SANDBOX_HOST, SANDBOX_PORT } = config
  const metrics = {
    setting: 'METRICS_PORT',
    hostSetting: METRICS_HOST === undefined ? 'HOST' : 'METRICS_HOST',
    host: METRICS_HOST ?? HOST,
  }
  const sandbox = { setting: 'SANDBOX_PORT', hostSetting: 'SANDBOX_HOST', host: SANDBOX_HOST }
  const hasSandbox = config.demo && config.GATEWAY_BASE_URL === undefined
  return [
    { setting: 'PORT', hostSetting: 'HOST', host: HOST, port: PORT },
    ...(METRICS_PORT === undefined ? [] : [{ ...metrics, port: METRICS_PORT }]),
    ...(hasSandbox ? [{ ...sandbox, port: SANDBOX_PORT }] : []),
  ]
}

async function bind(one: Port): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  server.listen(one.port, one.host)
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    throw new PortError(explain(one, error), { cause: error })
  }
}

function explain({ setting, hostSetting, host, port }: Port, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  if (code === 'EADDRINUSE') {
    return `${setting}: another program listens on ${formatAddress(host, port)}; stop it, or set ${setting} to another port`
  }
  if (code === 'EACCES') {
    return `${setting}: this user may not listen on port ${port}; set ${setting} to a port above 1023`
  }
  return `${hostSetting}: cannot listen on ${host} (${code}); set ${hostSetting} to an address of this machine, for example ${hostSetting}=127.0.0.1`
}

function formatAddress(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
