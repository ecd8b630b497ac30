import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { requireFreePorts } from '../../../src/start/require-free-ports.ts'
import { pickPort, runMain, settingsFor } from '../../support/process.ts'

/** Returns a port that another program uses. */
async function takePort(): Promise<string> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  return String(typeof address === 'object' && address ? address.port : 0)
}

const check = (env: Record<string, string>) => requireFreePorts(readConfig(env))

describe('a port that is in use', () => {
  it.each([
    ['PORT', { SANDBOX_PORT: '0' }],
    ['METRICS_PORT', { PORT: '0', SANDBOX_PORT: '0' }],
    ['SANDBOX_PORT', { PORT: '0' }],
  ])('%s is named with its address', async (setting, others) => {
    const port = await takePort()
    await expect(check({ ...others, [setting]: port })).rejects.toThrow(
      `${setting}: another program listens on 127.0.0.1:${port}; stop it, or set ${setting} to another port`,
    )
  })

  it('by another of our own listeners is named with both', async () => {
    const port = await pickPort()
    await expect(check({ PORT: port, SANDBOX_PORT: port })).rejects.toThrow(
      `SANDBOX_PORT and PORT are both ${port}; set SANDBOX_PORT to another port`,
    )
  })

  it('is free on another address, which every address includes', async () => {
    const port = await pickPort()
    const both = { DEMO: 'true', PORT: port, SANDBOX_PORT: '0', METRICS_PORT: port }
    await check({ ...both, HOST: '127.0.0.1', METRICS_HOST: '127.0.0.2' })
    const sandbox = { DEMO: 'true', HOST: '0.0.0.0', PORT: port, SANDBOX_PORT: port }
    await expect(check(sandbox)).rejects.toThrow(`SANDBOX_PORT and PORT are both ${port};`)
  })

  it('counts only where it is used: the sandbox listens in demo mode alone', async () => {
    const SANDBOX_PORT = await takePort()
    await check({ ...settingsFor('postgres://db/ipn', 'http://127.0.0.1:9'), SANDBOX_PORT })
  })

  it('stops the start before the embedded database is made', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ports-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const DATA_DIR = join(folder, 'data')
    const SANDBOX_PORT = await takePort()
    const { ended, output } = runMain({ PORT: '0', SANDBOX_PORT, DATA_DIR })
    expect(await ended).toBe(1)
    expect(output().err).toMatch(/^SANDBOX_PORT: another program listens on [^\n]+\n$/)
    expect(existsSync(DATA_DIR)).toBe(false)
  })
})

describe('a free port', () => {
  it('is free again after it was checked', async () => {
    const [PORT, METRICS_PORT] = [await pickPort(), await pickPort()]
    const env = { PORT, METRICS_PORT, SANDBOX_PORT: '0' }
    await check(env)
    await check(env)
  })

  it('is released when another one is in use', async () => {
    const PORT = await pickPort()
    await expect(check({ PORT, SANDBOX_PORT: await takePort() })).rejects.toThrow('SANDBOX_PORT')
    await check({ PORT, SANDBOX_PORT: '0' })
  })
})

it('an address of another machine gives a line that names its setting', async () => {
  // Reserved for documentation (RFC 5737): no machine has it.
  const address = '192.0.2.1'
  const sandbox = { DEMO: 'true', SANDBOX_PORT: '0' }
  await expect(check({ ...sandbox, HOST: address })).rejects.toThrow(
    /^HOST: cannot listen on 192\.0\.2\.1 \(EADDRNOTAVAIL\); set HOST to /,
  )
  const metrics = { METRICS_HOST: address, METRICS_PORT: await pickPort() }
  await expect(check({ ...sandbox, PORT: '0', ...metrics })).rejects.toThrow(
    /^METRICS_HOST: cannot/,
  )
})
