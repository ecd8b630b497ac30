import { expect, it } from 'vitest'
import { startFlood } from '../floods/victims.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

const FLOODER = '127.0.0.9'

it.skipIf(!programs)(
  'a flood of forged notifications is found and shut out by the lines of the page, while genuine ones are taken',
  async () => {
    const { url, shell } = await startServer()
    const { apiUrl, restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const end = await startFlood({
      url: apiUrl,
      path: '/ipn',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ svc_TransactionID: 'FORGED', svc_SecureHash: '0'.repeat(64) }),
      connections: 8,
      perS: 50,
      localAddress: FLOODER,
    })
    await untilServed()
    const [find = '', shutOut = ''] = await readLines('When a flood arrives')
    const found = await shell.play(find)
    expect(found).toMatch(/^ipn_received_total\{verdict="bad_signature"\} [1-9]/m)
    expect(found).toMatch(new RegExp(`^ +\\d+ "address":"${FLOODER}"$`, 'm'))
    shell.env.NETWORKS = '127.0.0.1/32'
    expect(await shell.play(shutOut)).toMatch(/^ok +settings /m)
    await restart()
    await untilServed()
    const answers = await end()
    console.info(`the flood was answered ${JSON.stringify(answers)}`)
    expect(answers[403]).toBeGreaterThan(20)
    expect(answers[200]).toBeUndefined()
    await expectInOrder()
  },
  600_000,
)
