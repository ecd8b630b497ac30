import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { listen } from '../../../src/http/server.ts'
import { explainError, explainPort } from '../../../src/start/explain-error.ts'
import { settingsFor } from '../../support/process.ts'

/** Returns a port that another program uses. */
async function takePort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** Listens there, which fails, and returns what the start says of it. */
async function failAt(host: string, port: number, env: Record<string, string>): Promise<string> {
  const failure = await listen(createServer(), host, port).catch((error: unknown) => error)
  return explainError(explainPort(failure, readConfig(env)))
}

it.each([
  ['PORT', { SANDBOX_PORT: '0' }],
  ['METRICS_PORT', { PORT: '0', SANDBOX_PORT: '0' }],
  ['SANDBOX_PORT', { PORT: '0' }],
])('a port in use of %s is named with its address', async (setting, others) => {
  const port = await takePort()
  expect(await failAt('127.0.0.1', port, { ...others, [setting]: String(port) })).toBe(
    `${setting}: another program listens on 127.0.0.1:${port}; stop it, or set ${setting} to another port`,
  )
})

it('a port in use at a name is named with the name', async () => {
  const port = await takePort()
  const env = { HOST: 'localhost', PORT: String(port), SANDBOX_PORT: '0' }
  expect(await failAt('127.0.0.1', port, env)).toMatch(
    /^PORT: another program listens on localhost/,
  )
})

it('an address of another machine gives a line that names its setting', async () => {
  // Reserved for documentation (RFC 5737): no machine has it.
  const address = '192.0.2.1'
  const sandbox = { DEMO: 'true', PORT: '0', SANDBOX_PORT: '0' }
  expect(await failAt(address, 0, { ...sandbox, HOST: address })).toMatch(
    /^HOST: cannot listen on 192\.0\.2\.1 \(EADDRNOTAVAIL\); set HOST to /,
  )
  const metrics = { METRICS_HOST: address, METRICS_PORT: '9464' }
  expect(await failAt(address, 9464, { ...sandbox, ...metrics })).toMatch(/^METRICS_HOST: cannot/)
})

it('the sandbox and the service cannot listen on one port, unless their addresses differ', () => {
  const same = { DEMO: 'true', PORT: '4010', SANDBOX_PORT: '4010' }
  expect(() => readConfig(same)).toThrow(
    /^SANDBOX_PORT must differ from PORT .* SANDBOX_PORT=4011$/,
  )
  expect(() => readConfig({ ...same, HOST: '0.0.0.0' })).toThrow('SANDBOX_PORT')
  expect(readConfig({ ...same, SANDBOX_HOST: '127.0.0.2' }).PORT).toBe(4010)
  // Outside demo mode there is no sandbox.
  const { SANDBOX_PORT, PORT } = same
  const production = settingsFor('postgres://db/ipn', 'http://127.0.0.1:9')
  expect(readConfig({ ...production, SANDBOX_PORT, PORT }).PORT).toBe(4010)
})
