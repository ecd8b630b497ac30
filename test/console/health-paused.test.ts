import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { addVisitors } from '../support/console.ts'
import { openAs } from '../support/console-pages.ts'
import { MERCHANT } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const breaker = { failures: 1, pauseMs: 1, maxPauseMs: 1, untestedMs: 1_500 }
const rig = useRig({ settings: { ROLE: 'web' }, breaker })

const openHealth = async () => {
  const { operator } = await addVisitors(rig.database)
  return (await openAs(rig, operator, '/console/health')).html
}

it('the health page says that calls are paused while the next one waits', async () => {
  const { breakers } = rig.service.ctx.gateway
  breakers.of(MERCHANT.merchantCode, 'refund').tryAcquire()?.fail()
  expect(await openHealth()).toContain('Refunds of account UFLIYL are paused.')
})

it('the health page says no more that calls are paused once no call has tested the gateway for long', async () => {
  const { breakers } = rig.service.ctx.gateway
  breakers.of(MERCHANT.merchantCode, 'cards').tryAcquire()?.fail()
  expect(breakers.listPaused()).not.toEqual([])
  await pause(2_000)
  expect(breakers.listPaused()).toEqual([])
  expect(await openHealth()).not.toContain('are paused.')
})
