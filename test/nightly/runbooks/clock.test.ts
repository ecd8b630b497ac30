import { expect, it } from 'vitest'
import { bundle } from '../../support/bundle.ts'
import { makeFolder } from '../../support/embedded.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

it.skipIf(!programs)(
  'a clock that is an hour ahead is found by the lines of the page, and moves nothing twice',
  async () => {
    const { url, shell } = await startServer()
    const { restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const clock = bundle('test/nightly/chaos/shifted-clock.ts', makeFolder(), 'clock')
    Object.assign(shell.env, { CHAOS_CLOCK_SHIFT_MS: '3600000', NODE_OPTIONS: `--import ${clock}` })
    await restart()
    await untilServed()
    const [look = ''] = await readLines('When a clock is wrong')
    const [doctor = '', probe = ''] = look.trim().split('\n')
    const wrong =
      /^(ERROR|WARN) +clock .*machine is (3599|360[01])\.\d s ahead of the .*; synchronise/m
    expect(await shell.play(doctor, [1])).toMatch(wrong)
    expect(await shell.play(probe, [0, 1])).toMatch(wrong)
    // The operator mends it.
    delete shell.env.NODE_OPTIONS
    await restart()
    await untilServed()
    await shell.play(look)
    await expectInOrder()
  },
  600_000,
)
