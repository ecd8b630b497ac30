import { expect, it } from 'vitest'
import { waitUntil } from '../../support/wait-until.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

it.skipIf(!programs)(
  'an outage of the gateway is seen and ended by the lines of the page',
  async () => {
    const { url, shell } = await startServer()
    Object.assign(shell.env, { SYNC_MAX_ATTEMPTS: '3' })
    const installation = await startInstallation(shell, url)
    const { gateway, readReady, untilServed, expectInOrder } = installation
    await untilServed()
    const [during = '', after = ''] = await readLines('When the gateway does not answer')
    await gateway.send('POST', '/faults', { command: '*', kind: 'reset', probability: 1 })
    const isPaused = async () => (await readReady('worker')).includes('"paused"')
    await waitUntil(isPaused, { what: 'calls are paused', timeoutMs: 60_000 })
    const told = await shell.play(during, [1])
    expect(told).toMatch(/"paused":\[[^\]]*"query/)
    expect(told).toMatch(/^ERROR +query .*no answer to QUERY_PT .*GATEWAY_BASE_URL/m)
    await gateway.send('DELETE', '/faults')
    await shell.play(after)
    await untilServed()
    await expectInOrder()
  },
  600_000,
)
