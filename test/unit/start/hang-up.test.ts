import { expect, it } from 'vitest'
import { createHangUpHandler } from '../../../src/start/hang-up.ts'

it.each([
  ['a process without a terminal reloads', [0, 0], 'reload'],
  ['a process whose terminal is still there reloads', [3, 3], 'reload'],
  ['a process whose terminal was closed stops', [3, 0], 'stop'],
])('at SIGHUP %s', (_, terminals, expected) => {
  const done: string[] = []
  const counts = terminals.values()
  const handle = createHangUpHandler(
    () => done.push('reload'),
    () => done.push('stop'),
    () => counts.next().value ?? 0,
  )
  handle()
  expect(done).toEqual([expected])
})
