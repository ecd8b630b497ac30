import { expect, it } from 'vitest'
import { ACCOUNT } from '../failover/stage.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

it.skipIf(!programs)(
  'the secret of the gateway is changed by the lines of the page: no refund is refused for it',
  async () => {
    const { url, shell } = await startServer()
    const installation = await startInstallation(shell, url, { waitsFor: 'held' })
    const { sandbox, restart, untilServed, expectInOrder } = installation
    await untilServed()
    const [hold = '', change = '', release = ''] = await readLines("The gateway's secret")
    await shell.play(hold)
    shell.env.NEW_SECRET = 'the-secret-that-the-gateway-issued'
    const merchant = sandbox.state.merchants.get(ACCOUNT.merchantCode)
    if (!merchant) throw new Error('the gateway does not know the account')
    const given = await shell.play('npm run -s cli -- probe', [0, 1])
    expect(given).toMatch(/^ok +signature /m)
    merchant.secret = shell.env.NEW_SECRET
    expect(await shell.play('npm run -s cli -- probe', [1])).toMatch(
      /^ERROR +signature .*GATEWAY_SECRET/m,
    )
    expect(await shell.play(change)).toMatch(/^ok +signature /m)
    await restart()
    await shell.play(release)
    await untilServed()
    await expectInOrder()
  },
  600_000,
)
