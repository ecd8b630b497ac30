import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { explainError } from '../../../src/cli/explain.ts'
import { type Binding, listen } from '../../../src/http/server.ts'
import { runMain, settingsFor } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

/** Returns a port that another program uses. */
async function takePort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** Listens there, which fails, and returns what the start says of it. */
async function failAt(binding: Binding): Promise<string> {
  return explainError(await listen(createServer(), binding).catch((error: unknown) => error))
}

const settings = { host: 'METRICS_HOST', port: 'METRICS_PORT' }

it.each(['127.0.0.1', 'localhost'])(
  'a port in use at %s is named with its setting',
  async (host) => {
    const port = await takePort()
    expect(await failAt({ host, port, settings })).toBe(
      `METRICS_PORT: another program listens on ${host}:${port}; stop it, or set METRICS_PORT to another port`,
    )
  },
)

it('an address of another machine gives a line that names its setting', async () => {
  // Reserved for documentation (RFC 5737): no machine has it.
  expect(await failAt({ host: '192.0.2.1', port: 0, settings })).toMatch(
    /^METRICS_HOST: cannot listen on 192\.0\.2\.1 \(EADDRNOTAVAIL\); set METRICS_HOST to /,
  )
})

it('a start whose port is in use names PORT, and ends with 1', async () => {
  const port = await takePort()
  const { ended, output } = runMain({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    PORT: String(port),
  })
  expect(await ended).toBe(1)
  expect(output().err).toBe(
    `PORT: another program listens on 127.0.0.1:${port}; stop it, or set PORT to another port\n`,
  )
})
