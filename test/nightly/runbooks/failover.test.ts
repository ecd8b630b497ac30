import { expect, it } from 'vitest'
import { startInstallation } from './installation.ts'
import { openMachine, programs, readLines, STOP, startServer } from './shell.ts'

it.skipIf(!programs)(
  'a primary is replaced by its standby by the lines of the page, and becomes the next standby: nothing is lost',
  async () => {
    const { url, shell: first } = await startServer()
    const { url: other, shell: second } = await openMachine()
    const hosts = [url, other].map((one) => new URL(one).host).join()
    const both = `postgres://postgres@${hosts}/postgres?target_session_attrs=primary`
    for (const { env } of [first, second]) env.DATABASE_URL = both

    const [setUp = ''] = await readLines('A standby, and failover')
    await second.play(setUp)
    const { untilServed, expectInOrder } = await startInstallation(first, both)
    await untilServed()
    await first.play(STOP)
    const [failOver = '', moveAside = ''] = await readLines('Failing over by hand')
    Object.assign(second.env, { ...first.env, ...second.env })
    const told = await second.play(failOver)
    expect(told).toMatch(/^ok +restore +the server of before/m)
    await untilServed()
    await first.play(moveAside + setUp)
    expect(await first.play('npm run -s cli -- doctor')).toMatch(/^ok +standby +.* 1 confirm them/m)
    await untilServed()
    await expectInOrder(other)
  },
  600_000,
)
